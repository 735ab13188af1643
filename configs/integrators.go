package configs

import (
	"fmt"
	"net/url"
	"os"

	"usher/queue/customer"
	"usher/queue/returnto"
)

// Customers is the integrator who names a room's fans by signed tokens. Keys are
// published (jwksURL), a file (jwksFile), or shared secrets for HS256 (secrets, or
// secretsFile, one a line).
type Customers struct {
	Issuer   string
	Audience string // default: the room's name, or "usher" for every room
	Required bool   // nobody else gets a new place
	JWKSURL  string
	JWKS     Secret // what jwksFile holds; it may hold secrets
	Secrets  []Secret

	jwksFile, secretsFile string
}

// ReturnTo is where a room's fans may go back to.
type ReturnTo struct {
	URL      string
	Handover string // post or cookie
}

func setCustomers(p *map[string]Customers, raw any) error {
	rooms, ok := raw.(map[string]any)
	if !ok {
		return fmt.Errorf("must map a room to its integrator, not be %s", kindOf(raw))
	}
	out := make(map[string]Customers, len(rooms))
	for _, room := range sortedKeys(rooms) {
		m, ok := rooms[room].(map[string]any)
		if !ok {
			return fmt.Errorf("of room %q must be a group of keys, not %s", room, kindOf(rooms[room]))
		}
		var c Customers
		for _, key := range sortedKeys(m) {
			var err error
			switch text, isText := m[key].(string); {
			case key == "required":
				err = setBool(&c.Required, m[key])
			case key == "secrets":
				var list []string
				list, err = textsOf(m[key])
				for _, s := range list {
					c.Secrets = append(c.Secrets, Secret(s))
				}
			case !isText:
				err = fmt.Errorf("must be text, not %s", kindOf(m[key]))
			case key == "issuer":
				c.Issuer = text
			case key == "audience":
				c.Audience = text
			case key == "jwksURL":
				c.JWKSURL = text
			case key == "jwksFile":
				c.jwksFile = text
			case key == "secretsFile":
				c.secretsFile = text
			default:
				return fmt.Errorf("of room %q: unknown key %q; it takes issuer, audience, required, jwksURL, jwksFile, secrets and secretsFile", room, key)
			}
			if err != nil {
				return fmt.Errorf("of room %q: %s %w", room, key, err)
			}
		}
		out[room] = c
	}
	*p = out
	return nil
}

// readCustomers reads the files that the entries name, relative to the configuration's
// own; a change of one of them is a change of the configuration.
func (l *loader) readCustomers(key string, rooms map[string]Customers) {
	for _, room := range sortedKeys(rooms) {
		c := rooms[room]
		read := func(what, name string) []byte {
			data, err := os.ReadFile(l.beside(name))
			if err != nil {
				l.add(key, "of room %q: %s: %v", room, what, err)
			}
			_, _ = l.digest.Write(data)
			return data
		}
		if c.jwksFile != "" {
			c.JWKS = Secret(read("jwksFile", c.jwksFile))
		}
		if c.secretsFile != "" {
			for _, line := range linesOf(read("secretsFile", c.secretsFile)) {
				c.Secrets = append(c.Secrets, Secret(line))
			}
		}
		rooms[room] = c
	}
}

func setReturns(p *map[string][]ReturnTo, raw any) error {
	rooms, ok := raw.(map[string]any)
	if !ok {
		return fmt.Errorf("must map a room to a list of addresses, not be %s", kindOf(raw))
	}
	out := make(map[string][]ReturnTo, len(rooms))
	for _, room := range sortedKeys(rooms) {
		list, ok := rooms[room].([]any)
		if !ok {
			return fmt.Errorf("of room %q must be a list of addresses, not %s", room, kindOf(rooms[room]))
		}
		for i, e := range list {
			r := ReturnTo{Handover: returnto.Post}
			switch v := e.(type) {
			case string:
				r.URL = v
			case map[string]any:
				for _, key := range sortedKeys(v) {
					text, isText := v[key].(string)
					switch {
					case !isText:
						return fmt.Errorf("of room %q, entry %d: %s must be text, not %s", room, i+1, key, kindOf(v[key]))
					case key == "url":
						r.URL = text
					case key == "handover":
						r.Handover = text
					default:
						return fmt.Errorf("of room %q, entry %d: unknown key %q; it takes url and handover", room, i+1, key)
					}
				}
			default:
				return fmt.Errorf("of room %q, entry %d must be an address, or {url, handover}, not %s", room, i+1, kindOf(e))
			}
			out[room] = append(out[room], r)
		}
	}
	*p = out
	return nil
}

func (c *Config) checkIntegrators(bad report) {
	for _, room := range sortedKeys(c.Edge.Customers) {
		e := c.Edge.Customers[room]
		fault := func(format string, args ...any) {
			bad("edge.customers", "of room %q: %s", room, fmt.Sprintf(format, args...))
		}
		if e.Issuer == "" {
			fault("issuer is missing; it is the iss of the tokens")
		}
		keys := 0
		if e.JWKSURL != "" {
			keys++
			if !goodKeyURL(e.JWKSURL) {
				fault("jwksURL must be an https address, not %q", e.JWKSURL)
			}
		}
		if e.jwksFile != "" || e.JWKS != "" {
			keys++
			if _, err := customer.ParseJWKS([]byte(e.JWKS.Reveal()), true); err != nil && e.JWKS != "" {
				fault("jwksFile: %v", err)
			}
		}
		if len(e.Secrets) > 0 || e.secretsFile != "" {
			keys++
		}
		for i, s := range e.Secrets {
			if len(s) < minSecret {
				fault("secret %d is shorter than %d characters", i+1, minSecret)
			}
		}
		if keys != 1 {
			fault("needs its keys by one of jwksURL, jwksFile and secrets (or secretsFile)")
		}
	}
	for _, room := range sortedKeys(c.Edge.ReturnTo) {
		for i, r := range c.Edge.ReturnTo[room] {
			if err := (returnto.Entry{URL: r.URL, Handover: r.Handover}).Check(); err != nil {
				bad("edge.returnTo", "of room %q, entry %d (%s): %v", room, i+1, r.URL, err)
			}
		}
	}
}

// goodKeyURL: https, or http within this machine; over anything else a key could be
// exchanged on its way.
func goodKeyURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && (returnto.Entry{URL: "http://" + u.Host}).Check() == nil
}
