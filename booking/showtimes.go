package booking

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PriceClass is what a seat of that class costs.
type PriceClass struct {
	Code, Name string
	Amount     int64  // minor units of the showtime's currency
	Color      string // CSS colour for the map, "" to leave the choice to the page
}

// Showtime is one performance of an event, with what its event and venue say.
type Showtime struct {
	ID, EventID, Title, Subtitle string
	Kind                         string // cinema, stadium
	Room, RoomTitle, RoomMode    string
	Venue, City, Timezone        string // Timezone is an IANA name
	StartsAt                     time.Time
	Currency                     string
	LayoutID                     string
	ScopeID                      string // where the customer limit counts; also decides the lane
	MaxPerHold                   int
	MaxPerCustomer               int // 0: no limit
	HoldTime                     time.Duration
	PriceClasses                 []PriceClass // dearest first
	// sectionCost is how much worse than the best a section is for who asks for the
	// best seats anywhere; nil in a list.
	sectionCost map[string]float64
}

// price finds the amount of a class.
func (s *Showtime) price(class string) (int64, bool) {
	for _, p := range s.PriceClasses {
		if p.Code == class {
			return p.Amount, true
		}
	}
	return 0, false
}

// Seat is one seat of a layout.
type Seat struct {
	Code, Section, Row, Number string // Row and Number are printed labels: text, never to be compared as numbers
	RowIndex, Position         int    // physical: row from the stage, place in it; a gap in Position is an aisle
	X, Y                       float32
	PriceClass                 string
	Accessible, Standing       bool
}

// Layout is one immutable version of a venue's seats, in physical order.
type Layout struct {
	ID    string
	Shape json.RawMessage
	Seats []Seat
	index map[string]int // seat code → place in Seats
}

const showtimeColumns = `
	SELECT s.showtime_id, s.event_id, e.title, e.subtitle, e.kind, s.room_id, r.title, r.mode,
	       v.name, v.city, v.timezone, s.starts_at, e.currency, s.layout_id, s.scope_id,
	       e.max_per_hold, COALESCE(e.max_per_customer, 0), e.hold_seconds
	  FROM showtime s JOIN event e USING (event_id) JOIN room r USING (room_id) JOIN venue v USING (venue_id)`

const (
	sqlShowtime  = showtimeColumns + ` WHERE s.showtime_id = $1`
	sqlShowtimes = showtimeColumns + ` WHERE $1 = '' OR s.room_id = $1 ORDER BY s.starts_at, s.showtime_id`

	sqlPriceClasses = `SELECT event_id, code, name, amount, color FROM price_class
	                    WHERE event_id = ANY($1) ORDER BY amount DESC, code`
	sqlLayout      = `SELECT shape FROM layout WHERE layout_id = $1`
	sqlLayoutSeats = `SELECT seat_code, section, row_label, seat_label, row_index, position, x, y, price_class, accessible, standing
	                    FROM layout_seat WHERE layout_id = $1 ORDER BY section, row_index, position`
)

// Showtimes lists a room's showtimes by their start, at most MapEvery old; room ""
// lists every one. The list is shared: do not change it.
func (o *Office) Showtimes(ctx context.Context, room string) ([]Showtime, error) {
	return o.catalog.list(ctx, room)
}

// Showtime finds one showtime, at most MapEvery old; ErrUnknownShowtime.
func (o *Office) Showtime(ctx context.Context, id string) (Showtime, error) {
	s, _, err := o.catalog.get(ctx, id)
	if err != nil {
		return Showtime{}, err
	}
	return *s, nil
}

func loadShowtimes(ctx context.Context, pool *pgxpool.Pool, sql, arg string) ([]Showtime, error) {
	rows, _ := pool.Query(ctx, sql, arg)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Showtime, err error) {
		var seconds int
		err = row.Scan(&s.ID, &s.EventID, &s.Title, &s.Subtitle, &s.Kind, &s.Room, &s.RoomTitle, &s.RoomMode,
			&s.Venue, &s.City, &s.Timezone, &s.StartsAt, &s.Currency, &s.LayoutID, &s.ScopeID,
			&s.MaxPerHold, &s.MaxPerCustomer, &seconds)
		s.StartsAt, s.HoldTime = s.StartsAt.UTC(), time.Duration(seconds)*time.Second
		return s, err
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var events []string
	for _, s := range list {
		events = append(events, s.EventID)
	}
	classes := map[string][]PriceClass{}
	rows, _ = pool.Query(ctx, sqlPriceClasses, events)
	var event string
	var p PriceClass
	if _, err := pgx.ForEachRow(rows, []any{&event, &p.Code, &p.Name, &p.Amount, &p.Color}, func() error {
		classes[event] = append(classes[event], p)
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range list {
		list[i].PriceClasses = classes[list[i].EventID]
	}
	return list, nil
}
