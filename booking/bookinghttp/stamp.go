package bookinghttp

import (
	"encoding/json"
	"time"
)

// stamp writes an instant as RFC 3339 in UTC with milliseconds.
type stamp time.Time

// MarshalJSON writes the instant.
func (t stamp) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(t).UTC().Format("2006-01-02T15:04:05.000Z"))
}
