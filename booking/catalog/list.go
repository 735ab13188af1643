package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrUnknownEvent says that no event bears the id.
var ErrUnknownEvent = errors.New("catalog: unknown event")

// EventInfo is one event as `usher event list` shows it.
type EventInfo struct {
	ID, Title, Kind, Venue string
	Currency               string
	Showtimes              int
	FirstStart, LastStart  time.Time // zero without showtimes
}

// EventDetail is one event as `usher event show` shows it.
type EventDetail struct {
	EventInfo
	Subtitle, City, Timezone string
	MaxPerHold               int
	MaxPerCustomer           int // 0: no limit
	LimitScope               string
	Hold                     time.Duration
	Prices                   []Price
	Times                    []ShowtimeInfo
}

// ShowtimeInfo is one showtime with its seats counted; a hold whose time is over
// counts as free.
type ShowtimeInfo struct {
	ID, Room, Layout          string
	StartsAt                  time.Time
	Seats, Free, Held, Booked int
}

const sqlEvents = `
	SELECT e.event_id, e.title, e.kind, v.name, e.currency, count(s.showtime_id),
	       COALESCE(min(s.starts_at), '0001-01-01T00:00:00Z'), COALESCE(max(s.starts_at), '0001-01-01T00:00:00Z'),
	       e.subtitle, v.city, v.timezone, e.max_per_hold, COALESCE(e.max_per_customer, 0),
	       e.limit_scope, e.hold_seconds
	  FROM event e JOIN venue v USING (venue_id) LEFT JOIN showtime s USING (event_id)
	 WHERE $1 = '' OR e.event_id = $1
	 GROUP BY e.event_id, v.venue_id
	 ORDER BY e.event_id`

func events(ctx context.Context, pool *pgxpool.Pool, id string) ([]EventDetail, error) {
	rows, _ := pool.Query(ctx, sqlEvents, id)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (EventDetail, error) {
		var e EventDetail
		var seconds int
		err := row.Scan(&e.ID, &e.Title, &e.Kind, &e.Venue, &e.Currency, &e.Showtimes,
			&e.FirstStart, &e.LastStart, &e.Subtitle, &e.City, &e.Timezone,
			&e.MaxPerHold, &e.MaxPerCustomer, &e.LimitScope, &seconds)
		e.Hold = time.Duration(seconds) * time.Second
		e.FirstStart, e.LastStart = e.FirstStart.UTC(), e.LastStart.UTC()
		return e, err
	})
}

// List is every event, by id.
func List(ctx context.Context, pool *pgxpool.Pool) ([]EventInfo, error) {
	all, err := events(ctx, pool, "")
	if err != nil {
		return nil, fmt.Errorf("catalog: list: %w", err)
	}
	out := make([]EventInfo, len(all))
	for i, e := range all {
		out[i] = e.EventInfo
	}
	return out, nil
}

// Show is one event with its prices and showtimes, or ErrUnknownEvent.
func Show(ctx context.Context, pool *pgxpool.Pool, id string) (EventDetail, error) {
	var found []EventDetail
	var err error
	if id != "" { // "" would mean every event
		found, err = events(ctx, pool, id)
	}
	if err != nil {
		return EventDetail{}, fmt.Errorf("catalog: show: %w", err)
	}
	if len(found) == 0 {
		return EventDetail{}, fmt.Errorf("%w: %q", ErrUnknownEvent, id)
	}
	e := found[0]
	if e.Prices, err = prices(ctx, pool, id); err != nil {
		return EventDetail{}, fmt.Errorf("catalog: show: %w", err)
	}
	if e.Times, err = showtimes(ctx, pool, id); err != nil {
		return EventDetail{}, fmt.Errorf("catalog: show: %w", err)
	}
	return e, nil
}

func prices(ctx context.Context, pool *pgxpool.Pool, event string) ([]Price, error) {
	rows, _ := pool.Query(ctx, sqlPrices, event)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Price, error) {
		var p Price
		return p, row.Scan(&p.Code, &p.Name, &p.Amount, &p.Color)
	})
}

func showtimes(ctx context.Context, pool *pgxpool.Pool, event string) ([]ShowtimeInfo, error) {
	rows, _ := pool.Query(ctx, sqlEventShowtimes, event)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (ShowtimeInfo, error) {
		var s ShowtimeInfo
		err := row.Scan(&s.ID, &s.Room, &s.Layout, &s.StartsAt, &s.Seats, &s.Held, &s.Booked)
		s.Free, s.StartsAt = s.Seats-s.Held-s.Booked, s.StartsAt.UTC()
		return s, err
	})
}
