package queue

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Settings are a room's row as Postgres has it; the bridge ships them.
type Settings struct {
	Room, Title   string
	Mode          string    // fifo, draw, passthrough, reject
	State         string    // scheduled, gathering, drawing, open, paused, closed
	RatePerMinute int       // most admissions a minute; 0 admits nobody
	Cap           int       // most fans inside at once; 0 admits nobody
	OpensAt       time.Time // zero without a schedule
	Run           int       // raised by an operator's reset: older places end
	Version       int64     // raised by every change
	BookingURL    string    // where this room's passes are taken
	// Guard makes a memory that begins with these settings begin with a recovery: only
	// who asks Postgres knows whether it is the room's first (Line.Resume). The bridge
	// sets it; without it a Redis and all edges that restart together are believed.
	Guard     bool
	GathersAt time.Time // zero without
	Timezone  string    // IANA name of the event's clock; "" is UTC
	Draw      DrawSettings
	// PriorityShare is how many percent of the calls go to the priority line while
	// somebody waits in both; 0: it is served only when nobody else waits.
	PriorityShare int
	Valve         string // fixed (or ""), adaptive: rate and cap are then the most it may open to
}

// DrawSettings are what Postgres has of a room's draw. Digest, Entries, Cut and At
// come back to it by Drawn, and are zero before.
type DrawSettings struct {
	Commitment  string // from the first day on
	PublicValue string
	Seed        []byte // only while and after it is drawn; PutSettings refuses it before
	Digest      [32]byte
	Entries     int
	Cut         int64 // highest score of the gathering: above it are latecomers
	At          time.Time
}

// The names a room may have: they become part of keys, cookies and addresses.
var roomName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (s Settings) validate() error {
	switch {
	case !roomName.MatchString(s.Room):
		return fmt.Errorf("queue: %q is no name for a room", s.Room)
	case s.RatePerMinute < 0 || s.RatePerMinute > 1_000_000, s.Cap < 0 || s.Cap > 1_000_000:
		return fmt.Errorf("queue: room %s: rate %d or cap %d is outside 0 to 1,000,000", s.Room, s.RatePerMinute, s.Cap)
	case s.PriorityShare < 0 || s.PriorityShare > 100:
		return fmt.Errorf("queue: room %s: priority share %d is outside 0 to 100", s.Room, s.PriorityShare)
	case s.Run < 1 || s.Version < 1:
		return errors.New("queue: run and version count from 1")
	case s.Mode == "" || s.State == "":
		return fmt.Errorf("queue: room %s: mode or state is missing", s.Room)
	case len(s.Draw.Seed) > 0 && s.State != "drawing" && s.Draw.At.IsZero():
		// Whoever reads Redis must not know the order while fans still join.
		return fmt.Errorf("queue: room %s: the seed of a draw is shipped before the drawing", s.Room)
	}
	return nil
}

// fields are what the scripts and the boards find in the hash, beside version,
// run, state and url: name and value in turn. Times are µs, 0 for none.
func (s Settings) fields(hold time.Duration) []any {
	f := []any{
		"mode", s.Mode, "rate", s.RatePerMinute, "cap", s.Cap, "title", s.Title,
		"opens", unixMicros(s.OpensAt), "gathers", unixMicros(s.GathersAt), "zone", s.Timezone,
		"valve", s.Valve, "share", s.PriorityShare,
	}
	if s.Guard {
		f = append(f, "hold", micros(hold))
	}
	return append(f, s.Draw.fields()...)
}

func (d DrawSettings) fields() []any {
	digest := "" // until it is drawn: the scripts ask for that
	if !d.At.IsZero() {
		digest = hex.EncodeToString(d.Digest[:])
	}
	return []any{
		"commitment", d.Commitment, "public", d.PublicValue, "seed", hex.EncodeToString(d.Seed),
		"digest", digest, "entries", d.Entries, "cut", d.Cut, "drawn", unixMicros(d.At),
	}
}

// unixMicros is an instant as the scripts keep it; 0 for the zero time.
func unixMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// PutSettings ships a room's settings and adds it to the list of rooms. By
// version: an older one never overwrites a newer, the same one changes nothing but
// the booking URL.
// Scripts read the settings in Redis, so a pause stops every edge with this call.
func (l *Line) PutSettings(ctx context.Context, s Settings) error {
	if err := s.validate(); err != nil {
		return err
	}
	r := l.own(s.Room)
	args := append([]any{s.Version, s.Run, s.State, s.BookingURL, micros(l.opts.ClaimWindow)}, s.fields(l.hold())...)
	reply, err := l.run(ctx, settingsScript, r.keys, args...)
	if err != nil {
		return err
	}
	if written, ok := reply.(int64); ok && written == 1 || r.board.Load() == nil {
		if err := l.refresh(ctx, r); err != nil {
			return err
		}
	}
	// Each time, not only at first: a Redis that lost the list gets it back. And last: its
	// node may be down while the room's is not.
	if err := l.rdb.SAdd(ctx, roomsKey, s.Room).Err(); err != nil {
		return storeError("add room "+s.Room, err)
	}
	return nil
}
