package configs

import (
	"log/slog"
	"net/url"
)

const redacted = "[redacted]"

// Secret is a string that prints as "[redacted]" wherever it is printed,
// logged or marshalled; Reveal is the one way to its value.
type Secret string

// Reveal returns the value, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString keeps %#v from showing what %v hides.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue is what slog writes.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is what JSON and text encoders write.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML is what a printed configuration shows.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// StoreURL is a store's address; its password is never printed.
type StoreURL string

// Reveal returns the address with its password, for the store's client.
func (u StoreURL) Reveal() string { return string(u) }

func (u StoreURL) String() string {
	if u == "" {
		return ""
	}
	p, err := url.Parse(string(u))
	if err != nil || p.Scheme == "" {
		return redacted // "host=… password=…" and what cannot be read at all
	}
	q := p.Query()
	for k := range q {
		if k == "password" || k == "sslpassword" {
			q.Set(k, "xxxxx")
			p.RawQuery = q.Encode()
		}
	}
	return p.Redacted()
}

// GoString keeps %#v from showing what %v hides.
func (u StoreURL) GoString() string { return `"` + u.String() + `"` }

// LogValue is what slog writes.
func (u StoreURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText is what JSON and text encoders write.
func (u StoreURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalYAML is what a printed configuration shows.
func (u StoreURL) MarshalYAML() (any, error) { return u.String(), nil }
