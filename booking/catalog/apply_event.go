package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

func (a *applier) event(e Event) error {
	was, exists, err := a.storedEvent(e.ID)
	if err != nil {
		return err
	}
	if !exists {
		err = a.createEvent(e)
	} else {
		err = a.changeEvent(was, e)
	}
	return err
}

// showtimes makes those of all events, unless an event may not be as the file says.
func (a *applier) showtimes() error {
	if len(a.faults) > 0 {
		return nil
	}
	type work struct {
		event Event
		show  Showtime
	}
	var all []work
	for _, e := range a.file.Events {
		for _, s := range e.Showtimes {
			all = append(all, work{e, s})
		}
	}
	slices.SortFunc(all, func(x, y work) int { return strings.Compare(x.show.ID, y.show.ID) })
	for _, w := range all {
		if err := a.showtime(w.event, a.venueOf(w.event), w.show); err != nil {
			return fmt.Errorf("event %s: %w", w.event.ID, err)
		}
	}
	for _, e := range a.file.Events {
		if err := a.leftOver(e); err != nil {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
		if err := a.dropPrices(e); err != nil {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
	}
	return nil
}

func (a *applier) venueOf(e Event) Venue {
	for _, v := range a.file.Venues {
		if v.ID == e.Venue {
			return v
		}
	}
	panic("catalog: Parse let through an event without a venue")
}

func (a *applier) storedEvent(id string) (Event, bool, error) {
	was := Event{ID: id}
	var seconds int
	err := a.tx.QueryRow(a.ctx, sqlLockEvent, id).
		Scan(&was.Venue, &was.Title, &was.Subtitle, &was.Kind, &was.Currency, &was.MaxPerHold,
			&was.MaxPerCustomer, &was.LimitScope, &seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return was, false, nil
	}
	was.Hold = time.Duration(seconds) * time.Second
	return was, true, err
}

func (a *applier) createEvent(e Event) error {
	_, err := a.tx.Exec(a.ctx, sqlNewEvent,
		e.ID, e.Venue, e.Title, e.Subtitle, e.Kind, e.Currency, e.MaxPerHold,
		e.MaxPerCustomer, e.LimitScope, int(e.Hold.Seconds()), a.file.Digest)
	if err != nil {
		return err
	}
	a.note("created", "event", e.ID, "%s", e.Title)
	_, err = a.prices(e)
	return err
}

func (a *applier) changeEvent(was, e Event) error {
	if was.Currency != e.Currency || was.LimitScope != e.LimitScope {
		// A take carries both from a moment ago, in any process: they stand from the
		// first showtime on, and no take has to be asked what it believes.
		var onSale bool
		if err := a.tx.QueryRow(a.ctx, sqlHasShowtimes, e.ID).Scan(&onSale); err != nil {
			return err
		}
		if onSale && was.Currency != e.Currency {
			a.refuse(e.Line, "events."+e.ID+".currency", "cannot change from %s to %s: it has showtimes; make another event", was.Currency, e.Currency)
		}
		if onSale && was.LimitScope != e.LimitScope {
			a.refuse(e.Line, "events."+e.ID+".limits.limitScope", "cannot change from %s to %s: it has showtimes; make another event", was.LimitScope, e.LimitScope)
		}
		if len(a.faults) > 0 {
			return nil
		}
	}
	d := differences("venue", was.Venue, e.Venue, "title", was.Title, e.Title, "subtitle", was.Subtitle, e.Subtitle,
		"kind", was.Kind, e.Kind, "currency", was.Currency, e.Currency, "maxPerHold", was.MaxPerHold, e.MaxPerHold,
		"maxPerCustomer", was.MaxPerCustomer, e.MaxPerCustomer, "limitScope", was.LimitScope, e.LimitScope,
		"hold", was.Hold, e.Hold)
	changedPrices, err := a.prices(e)
	if err != nil {
		return err
	}
	d = strings.Trim(d+", "+changedPrices, ", ")
	if d == "" {
		a.summary.Unchanged++
		return nil
	}
	a.note("changed", "event", e.ID, "%s", d)
	_, err = a.tx.Exec(a.ctx, sqlChangeEvent, e.ID, e.Venue, e.Title, e.Subtitle, e.Kind, e.Currency, e.MaxPerHold,
		e.MaxPerCustomer, e.LimitScope, int(e.Hold.Seconds()), a.file.Digest)
	return err
}

// prices writes the classes that are new or different, and tells which.
func (a *applier) prices(e Event) (string, error) {
	var d []string
	for _, p := range e.Prices {
		var was Price
		err := a.tx.QueryRow(a.ctx, sqlLockPrice, e.ID, p.Code).
			Scan(&was.Name, &was.Amount, &was.Color)
		if errors.Is(err, pgx.ErrNoRows) {
			d = append(d, "new price class "+p.Code)
		} else if err != nil {
			return "", err
		} else if diff := differences("name", was.Name, p.Name, "amount", was.Amount, p.Amount, "color", was.Color, p.Color); diff == "" {
			continue
		} else {
			d = append(d, "price class "+p.Code+" "+diff)
		}
		_, err = a.tx.Exec(a.ctx, sqlPutPrice, e.ID, p.Code, p.Name, p.Amount, p.Color)
		if err != nil {
			return "", err
		}
	}
	return strings.Join(d, ", "), nil
}

// dropPrices deletes classes the file no longer has, once no seat on sale has them.
func (a *applier) dropPrices(e Event) error {
	codes := make([]string, len(e.Prices))
	for i, p := range e.Prices {
		codes[i] = p.Code
	}
	rows, _ := a.tx.Query(a.ctx, sqlDropPrices, e.ID, codes)
	gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(gone) > 0 {
		a.note("changed", "event", e.ID, "price class %s is gone", strings.Join(gone, ", "))
	}
	return err
}

// leftOver names showtimes that exist and are not in the file.
func (a *applier) leftOver(e Event) error {
	ids := make([]string, len(e.Showtimes))
	for i, s := range e.Showtimes {
		ids[i] = s.ID
	}
	rows, _ := a.tx.Query(a.ctx, sqlLeftOver, e.ID, ids)
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range left {
		a.note("left", "showtime", id, "not in the file")
	}
	return err
}
