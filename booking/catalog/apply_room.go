package catalog

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// room creates or changes a waiting room. The version goes up with any change, for
// the bridge ships a room by it.
func (a *applier) room(r Room) error {
	var was Room
	err := a.tx.QueryRow(a.ctx, `
		SELECT title, mode, valve, rate_per_minute, cap, opens_at
		  FROM room WHERE room_id = $1 FOR UPDATE`, r.ID).
		Scan(&was.Title, &was.Mode, &was.Valve, &was.RatePerMinute, &was.Cap, &was.OpensAt)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = a.tx.Exec(a.ctx, `
			INSERT INTO room (room_id, title, mode, state, valve, rate_per_minute, cap, opens_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			r.ID, r.Title, r.Mode, r.State, r.Valve, r.RatePerMinute, r.Cap, r.OpensAt)
		a.note("created", "room", r.ID, "%s, %d a minute, %d inside", r.State, r.RatePerMinute, r.Cap)
		return err
	}
	if err != nil {
		return err
	}
	d := differences("title", was.Title, r.Title, "mode", was.Mode, r.Mode, "valve", was.Valve, r.Valve,
		"ratePerMinute", was.RatePerMinute, r.RatePerMinute, "cap", was.Cap, r.Cap,
		"opensAt", instant(was.OpensAt), instant(r.OpensAt))
	if d == "" {
		a.summary.Unchanged++
		return nil
	}
	a.note("changed", "room", r.ID, "%s", d)
	// The state is an operator's: it is not among these columns.
	_, err = a.tx.Exec(a.ctx, `
		UPDATE room SET title = $2, mode = $3, valve = $4, rate_per_minute = $5, cap = $6, opens_at = $7,
		       version = GREATEST(version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), updated_at = clock_timestamp()
		 WHERE room_id = $1`, r.ID, r.Title, r.Mode, r.Valve, r.RatePerMinute, r.Cap, r.OpensAt)
	return err
}

func instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	// The database keeps microseconds.
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}
