package queue

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Settings are a room's row as Postgres has it; the bridge ships them.
type Settings struct {
	Room, Title   string
	Mode          string    // fifo, passthrough, reject (draw lines up as fifo does)
	State         string    // scheduled, gathering, drawing, open, paused, closed
	RatePerMinute int       // most admissions a minute; 0 admits nobody
	Cap           int       // most fans inside at once; 0 admits nobody
	OpensAt       time.Time // zero without a schedule
	Run           int       // raised by an operator's reset: older places end
	Version       int64     // raised by every change
	BookingURL    string    // where this room's passes are taken
}

// The names a room may have: they become part of keys, cookies and addresses.
var roomName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

func (s Settings) validate() error {
	switch {
	case !roomName.MatchString(s.Room):
		return fmt.Errorf("queue: %q is no name for a room", s.Room)
	case s.RatePerMinute < 0 || s.RatePerMinute > 1_000_000, s.Cap < 0 || s.Cap > 1_000_000:
		return fmt.Errorf("queue: room %s: rate %d or cap %d is outside 0 to 1,000,000", s.Room, s.RatePerMinute, s.Cap)
	case s.Run < 1 || s.Version < 1:
		return errors.New("queue: run and version count from 1")
	case s.Mode == "" || s.State == "":
		return fmt.Errorf("queue: room %s: mode or state is missing", s.Room)
	}
	return nil
}

// fields are what the scripts and the boards find in the hash, beside version,
// run, state and url: name and value in turn. Times are µs, 0 for none.
func (s Settings) fields() []any {
	opens := int64(0)
	if !s.OpensAt.IsZero() {
		opens = s.OpensAt.UnixMicro()
	}
	return []any{
		"mode", s.Mode, "rate", s.RatePerMinute, "cap", s.Cap, "title", s.Title, "opens", opens,
	}
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
	args := append([]any{s.Version, s.Run, s.State, s.BookingURL, micros(l.opts.ClaimWindow)}, s.fields()...)
	reply, err := l.run(ctx, settingsScript, r.keys, args...)
	if err != nil {
		return err
	}
	// Each time, not only at first: a Redis that lost the list gets it back.
	if err := l.rdb.SAdd(ctx, roomsKey, s.Room).Err(); err != nil {
		return storeError("add room "+s.Room, err)
	}
	if written, ok := reply.(int64); ok && written == 1 || r.board.Load() == nil {
		return l.refresh(ctx, r)
	}
	return nil
}
