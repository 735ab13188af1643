package booking_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"usher/booking"
)

func TestParseTimeWhereClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, text, want, refused string }{
		{"Europe/Lisbon", "2026-03-28 20:00", "2026-03-28T20:00:00Z", ""},
		{"Europe/Lisbon", "2026-03-29 00:59", "2026-03-29T00:59:00Z", ""},
		{"Europe/Lisbon", "2026-03-29 01:00", "", "does not exist"},
		{"Europe/Lisbon", "2026-03-29 01:30", "", "does not exist"},
		{"Europe/Lisbon", "2026-03-29 02:00", "2026-03-29T01:00:00Z", ""},
		{"Europe/Lisbon", "2026-10-25 00:59", "2026-10-24T23:59:00Z", ""},
		{"Europe/Lisbon", "2026-10-25 01:30", "", "2026-10-25T01:30:00+01:00 or 2026-10-25T01:30:00Z"},
		{"Europe/Lisbon", "2026-10-25T01:30:00+01:00", "2026-10-25T00:30:00Z", ""},
		{"Europe/Lisbon", "2026-10-25T01:30:00+00:00", "2026-10-25T01:30:00Z", ""},
		{"Europe/Lisbon", "2026-10-25 02:00", "2026-10-25T02:00:00Z", ""},
		// Brazil changed at midnight, until 2019; since then its clocks stand.
		{"America/Sao_Paulo", "2018-11-04 00:30", "", "does not exist"},
		{"America/Sao_Paulo", "2018-11-04 01:00", "2018-11-04T03:00:00Z", ""},
		{"America/Sao_Paulo", "2018-02-17 23:30", "", "2018-02-17T23:30:00-02:00 or 2018-02-17T23:30:00-03:00"},
		{"America/Sao_Paulo", "2018-02-18 00:00", "2018-02-18T03:00:00Z", ""},
		{"America/Sao_Paulo", "2026-11-01 00:30", "2026-11-01T03:30:00Z", ""},
		{"UTC", "2026-02-30 10:00", "", "must be"},
		{"UTC", "tomorrow", "", "must be"},
		{"UTC", "2026-1-5 10:00", "", "must be"},
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		got, err := booking.ParseTime(c.text, loc)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) || (c.refused == "must be") != errors.Is(err, booking.ErrNotATime) {
				t.Errorf("%s in %s: %v, %v", c.text, c.zone, got, err)
			}
		case err != nil || got.UTC().Format(time.RFC3339) != c.want:
			t.Errorf("%s in %s: %v, %v, want %s", c.text, c.zone, got, err, c.want)
		}
	}
}
