package catalog

import (
	"errors"
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
	if err != nil || len(a.faults) > 0 {
		return err
	}
	venue := a.venueOf(e)
	for _, s := range e.Showtimes {
		if err := a.showtime(e, venue, s); err != nil {
			return err
		}
	}
	if err := a.leftOver(e); err != nil {
		return err
	}
	return a.dropPrices(e)
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
	err := a.tx.QueryRow(a.ctx, `
		SELECT venue_id, title, subtitle, kind, currency, max_per_hold, COALESCE(max_per_customer, 0),
		       limit_scope, hold_seconds
		  FROM event WHERE event_id = $1 FOR UPDATE`, id).
		Scan(&was.Venue, &was.Title, &was.Subtitle, &was.Kind, &was.Currency, &was.MaxPerHold,
			&was.MaxPerCustomer, &was.LimitScope, &seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return was, false, nil
	}
	was.Hold = time.Duration(seconds) * time.Second
	return was, true, err
}

func (a *applier) createEvent(e Event) error {
	_, err := a.tx.Exec(a.ctx, `
		INSERT INTO event (event_id, venue_id, title, subtitle, kind, currency, max_per_hold,
		                   max_per_customer, limit_scope, hold_seconds, source_digest)
		VALUES ($1, $2, $3, $4, $5, $6, $7, NULLIF($8, 0), $9, $10, $11)`,
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
		sold, err := a.onSale(e.ID)
		if err != nil {
			return err
		}
		if sold && was.Currency != e.Currency {
			a.refuse(e.Line, "events."+e.ID+".currency", "cannot change from %s to %s: there are holds or bookings", was.Currency, e.Currency)
		}
		if sold && was.LimitScope != e.LimitScope {
			a.refuse(e.Line, "events."+e.ID+".limits.limitScope", "cannot change from %s to %s: there are holds or bookings", was.LimitScope, e.LimitScope)
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
	_, err = a.tx.Exec(a.ctx, `
		UPDATE event SET venue_id = $2, title = $3, subtitle = $4, kind = $5, currency = $6, max_per_hold = $7,
		       max_per_customer = NULLIF($8, 0), limit_scope = $9, hold_seconds = $10, source_digest = $11
		 WHERE event_id = $1`, e.ID, e.Venue, e.Title, e.Subtitle, e.Kind, e.Currency, e.MaxPerHold,
		e.MaxPerCustomer, e.LimitScope, int(e.Hold.Seconds()), a.file.Digest)
	return err
}

// onSale tells whether anybody has ever held a seat of the event. It locks the
// showtimes first, so that nobody can begin to while this transaction decides:
// every hold's row refers to its showtime, and that reference waits for the lock.
func (a *applier) onSale(event string) (bool, error) {
	_, err := a.tx.Exec(a.ctx, `SELECT 1 FROM showtime WHERE event_id = $1 ORDER BY showtime_id FOR UPDATE`, event)
	if err != nil {
		return false, err
	}
	var sold bool
	err = a.tx.QueryRow(a.ctx, `
		SELECT EXISTS (SELECT 1 FROM hold h JOIN showtime s USING (showtime_id) WHERE s.event_id = $1)
		    OR EXISTS (SELECT 1 FROM booking b JOIN showtime s USING (showtime_id) WHERE s.event_id = $1)`, event).Scan(&sold)
	return sold, err
}

// prices writes the classes that are new or different, and tells which.
func (a *applier) prices(e Event) (string, error) {
	var d []string
	for _, p := range e.Prices {
		var was Price
		err := a.tx.QueryRow(a.ctx, `
			SELECT name, amount, color FROM price_class WHERE event_id = $1 AND code = $2 FOR UPDATE`, e.ID, p.Code).
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
		_, err = a.tx.Exec(a.ctx, `
			INSERT INTO price_class (event_id, code, name, amount, color) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (event_id, code) DO UPDATE SET name = $3, amount = $4, color = $5`,
			e.ID, p.Code, p.Name, p.Amount, p.Color)
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
	rows, _ := a.tx.Query(a.ctx, `
		DELETE FROM price_class p
		 WHERE event_id = $1 AND code <> ALL ($2)
		   AND NOT EXISTS (SELECT 1 FROM showtime s JOIN layout_seat l USING (layout_id)
		                    WHERE s.event_id = $1 AND l.price_class = p.code)
		RETURNING code`, e.ID, codes)
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
	rows, _ := a.tx.Query(a.ctx, `
		SELECT showtime_id FROM showtime WHERE event_id = $1 AND showtime_id <> ALL ($2) ORDER BY 1`, e.ID, ids)
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range left {
		a.note("left", "showtime", id, "not in the file")
	}
	return err
}
