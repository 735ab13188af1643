package catalog

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

type storedShowtime struct {
	event, room, layout, scope string
	starts                     time.Time
}

func (a *applier) showtime(e Event, v Venue, s Showtime) error {
	scope := s.ID
	if e.LimitScope == "event" {
		scope = "event:" + e.ID
	}
	// Locked before its seats, so that two changes of one showtime follow each other.
	var was storedShowtime
	err := a.tx.QueryRow(a.ctx, sqlLockShowtime, s.ID).
		Scan(&was.event, &was.room, &was.layout, &was.scope, &was.starts)
	if errors.Is(err, pgx.ErrNoRows) {
		return a.createShowtime(e, v, s, scope)
	}
	if err != nil {
		return err
	}
	if was.event != e.ID {
		a.refuse(s.Line, "events."+e.ID+".showtimes."+s.ID, "belongs to event %s already", was.event)
		return nil
	}
	starts := s.Starts.At
	if s.Starts.Relative {
		starts = was.starts
	}
	d := differences("room", was.room, s.Room, "startsAt", instant(&was.starts), instant(&starts),
		"layout", was.layout, v.LayoutID, "limitScope", was.scope, scope)
	if was.layout != v.LayoutID {
		seats, err := a.moveSeats(s, v.LayoutID)
		if err != nil || len(a.faults) > 0 {
			return err
		}
		d += seats
	}
	if d == "" {
		a.summary.Unchanged++
		return nil
	}
	a.note("changed", "showtime", s.ID, "%s", d)
	_, err = a.tx.Exec(a.ctx, sqlChangeShowtime,
		s.ID, s.Room, v.LayoutID, scope, starts)
	return err
}

func (a *applier) createShowtime(e Event, v Venue, s Showtime, scope string) error {
	var now time.Time
	if err := a.tx.QueryRow(a.ctx, sqlClock).Scan(&now); err != nil {
		return err
	}
	starts := s.Starts.on(now, v.location)
	if _, err := a.tx.Exec(a.ctx, sqlNewShowtime, s.ID, e.ID, s.Room, v.LayoutID, scope, starts); err != nil {
		return err
	}
	n, err := a.addSeats(s.ID, v.LayoutID)
	a.note("created", "showtime", s.ID, "%s, %d seats", starts.In(v.location).Format("2006-01-02 15:04 MST"), n)
	return err
}

func (a *applier) addSeats(showtime, layout string) (int64, error) {
	tag, err := a.tx.Exec(a.ctx, sqlAddSeats, showtime, layout)
	return tag.RowsAffected(), err
}

// moveSeats makes a showtime's seats those of another layout: it deletes the free ones
// that are gone and adds the new ones; a gone one that is sold or held refuses.
func (a *applier) moveSeats(s Showtime, layout string) (string, error) {
	busy, err := a.busySeats(s.ID, layout)
	if err != nil {
		return "", err
	}
	if len(busy) > 0 {
		a.refuse(s.Line, "showtimes."+s.ID, "these seats cannot be taken away: %s", naming(busy))
		return "", nil
	}
	gone, err := a.tx.Exec(a.ctx, sqlDropSeats, s.ID, layout)
	if err != nil {
		return "", err
	}
	added, err := a.addSeats(s.ID, layout)
	return fmt.Sprintf(" (%d seats added, %d removed)", added, gone.RowsAffected()), err
}

// busySeats locks the seats that are to go and names those somebody has. The look
// comes in a second statement: one that waited for a lock has an old snapshot.
func (a *applier) busySeats(showtime, layout string) ([]string, error) {
	if _, err := a.tx.Exec(a.ctx, sqlLockGoing, showtime, layout); err != nil {
		return nil, err
	}
	rows, _ := a.tx.Query(a.ctx, sqlBusyGoing, showtime, layout)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// naming lists the first of many.
func naming(all []string) string {
	const most = 20
	if len(all) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}
