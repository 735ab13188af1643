package catalog

import (
	"time"
)

// createRoom makes a waiting room that is not there; its showtimes refer to it.
func (a *applier) createRoom(r Room) error {
	tag, err := a.tx.Exec(a.ctx, sqlNewRoom,
		r.ID, r.Title, r.Mode, r.State, r.Valve, r.RatePerMinute, r.Cap, r.OpensAt, r.GathersAt, r.Timezone, r.PriorityShare)
	a.created[r.ID] = err == nil && tag.RowsAffected() == 1
	return err
}

// changeRoom makes a room that was there what the file says. The version goes up
// with any change, for the bridge ships a room by it. A change of settings is no
// change of the key: a session that begins refers to the row and does not wait.
func (a *applier) changeRoom(r Room) error {
	if a.created[r.ID] {
		a.note("created", "room", r.ID, "%s, %d a minute, %d inside", r.State, r.RatePerMinute, r.Cap)
		return nil
	}
	var was Room
	err := a.tx.QueryRow(a.ctx, sqlLockRoom, r.ID).
		Scan(&was.State, &was.Title, &was.Mode, &was.Valve, &was.RatePerMinute, &was.Cap, &was.OpensAt, &was.GathersAt, &was.Timezone, &was.PriorityShare)
	if err != nil {
		return err
	}
	if r.PriorityShare == nil {
		r.PriorityShare = was.PriorityShare
	}
	d := differences("title", was.Title, r.Title, "mode", was.Mode, r.Mode, "valve", was.Valve, r.Valve,
		"ratePerMinute", was.RatePerMinute, r.RatePerMinute, "cap", was.Cap, r.Cap,
		"opensAt", instant(was.OpensAt), instant(r.OpensAt), "gathersAt", instant(was.GathersAt), instant(r.GathersAt),
		"timezone", was.Timezone, r.Timezone, "priorityShare", *was.PriorityShare, *r.PriorityShare)
	if d == "" {
		a.summary.Unchanged++
		return nil
	}
	if was.Mode != r.Mode && (was.State == "gathering" || was.State == "drawing") {
		// Those in line were told how the order is made.
		a.refuse(r.Line, "rooms", "room %s is %s; its mode can be changed before that, or when it is open", r.ID, was.State)
		return a.faults
	}
	a.note("changed", "room", r.ID, "%s", d)
	// The state is an operator's: it is not among these columns.
	_, err = a.tx.Exec(a.ctx, sqlChangeRoom, r.ID, r.Title, r.Mode, r.Valve, r.RatePerMinute, r.Cap, r.OpensAt, r.GathersAt, r.Timezone, r.PriorityShare)
	return err
}

func instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	// The database keeps microseconds.
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}
