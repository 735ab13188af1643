package bookingtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Hall says what Seed puts on sale; zero values take the defaults named here.
type Hall struct {
	Room        string // default "room"
	Showtime    string // default "show"; its event is Event
	Event       string // default "event"
	Rows        int    // default 10: A, B, …
	PerRow      int    // default 20: A1 … A20
	Standing    int    // places GA-0001 … in a section GA of their own
	Limit       int    // most seats a customer; 0: no limit
	MaxPerHold  int    // default 8
	HoldSeconds int    // default 600
	EventScope  bool   // the limit counts over all showtimes of the event
	Mode        string // default fifo
}

func (h *Hall) complete() {
	text := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	number := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	text(&h.Room, "room")
	text(&h.Showtime, "show")
	text(&h.Event, "event")
	text(&h.Mode, "fifo")
	number(&h.Rows, 10)
	number(&h.PerRow, 20)
	number(&h.MaxPerHold, 8)
	number(&h.HoldSeconds, 600)
}

// Price is what every seat of a seeded hall costs, in cents of Currency.
const (
	Price    = 2500
	Currency = "EUR"
)

// Seed puts one showtime on sale and returns its seat codes, front row first and
// standing places last. Seeding again with another Showtime adds one to the same
// event and room.
func Seed(t testing.TB, pool *pgxpool.Pool, h Hall) []string {
	t.Helper()
	h.complete()
	ctx := context.Background()
	layout := fmt.Sprintf("venue@%dx%d+%d", h.Rows, h.PerRow, h.Standing)
	scope := h.Showtime
	if h.EventScope {
		scope = "event:" + h.Event
	}
	var limit *int
	if h.Limit > 0 {
		limit = &h.Limit
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatalf("seed: %v", err)
		}
	}
	exec(`INSERT INTO room (room_id, title, mode, rate_per_minute, cap) VALUES ($1, $1, $2, 600, 1000) ON CONFLICT DO NOTHING`, h.Room, h.Mode)
	exec(`INSERT INTO venue (venue_id, name, timezone) VALUES ('venue', 'Venue', 'Europe/Berlin') ON CONFLICT DO NOTHING`)
	exec(`INSERT INTO layout (layout_id, venue_id, shape) VALUES ($1, 'venue', '{}') ON CONFLICT DO NOTHING`, layout)
	exec(`INSERT INTO event (event_id, venue_id, title, kind, currency, max_per_hold, max_per_customer, limit_scope, hold_seconds)
	      VALUES ($1, 'venue', $1, 'cinema', $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		h.Event, Currency, h.MaxPerHold, limit, map[bool]string{false: "showtime", true: "event"}[h.EventScope], h.HoldSeconds)
	exec(`INSERT INTO price_class (event_id, code, name, amount) VALUES ($1, 'A', 'Standard', $2) ON CONFLICT DO NOTHING`, h.Event, Price)
	var codes, sections, rows, numbers []string
	var rowAt, at []int32
	add := func(code, section, row string, r, p int) {
		codes, sections, rows, numbers = append(codes, code), append(sections, section), append(rows, row), append(numbers, fmt.Sprint(p+1))
		rowAt, at = append(rowAt, int32(r+1)), append(at, int32(p+1))
	}
	for r := range h.Rows {
		for p := range h.PerRow {
			add(fmt.Sprintf("%s%d", rowLabel(r), p+1), "MAIN", rowLabel(r), r, p)
		}
	}
	for p := range h.Standing {
		add(fmt.Sprintf("GA-%04d", p+1), "GA", "", 0, p)
	}
	exec(`INSERT INTO layout_seat (layout_id, seat_code, section, row_label, seat_label, row_index, position, x, y, price_class, standing)
	      SELECT $1, c, s, r, n, ri, p, p, ri, 'A', s = 'GA'
	        FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[]) AS x(c, s, r, n, ri, p)
	      ON CONFLICT DO NOTHING`, layout, codes, sections, rows, numbers, rowAt, at)
	exec(`INSERT INTO showtime (showtime_id, event_id, room_id, layout_id, scope_id, starts_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		h.Showtime, h.Event, h.Room, layout, scope, time.Now().Add(30*24*time.Hour))
	exec(`INSERT INTO show_seat (showtime_id, seat_code) SELECT $1, seat_code FROM layout_seat WHERE layout_id = $2`, h.Showtime, layout)
	return codes
}

func rowLabel(r int) string {
	if r < 26 {
		return string(rune('A' + r))
	}
	return rowLabel(r/26-1) + rowLabel(r%26)
}

// Leave makes all but n of the seats of a showtime sold out of the way: they are
// taken off the sale, so that n are all there is.
func Leave(t testing.TB, pool *pgxpool.Pool, showtime string, n int) []string {
	t.Helper()
	ctx := context.Background()
	if _, err := pool.Exec(ctx, `
		UPDATE show_seat SET status = 'BOOKED', hold_id = gen_random_uuid(), customer_id = 'somebody', booking_id = gen_random_uuid(), hold_expires_at = NULL
		 WHERE showtime_id = $1 AND seat_code NOT IN (
		       SELECT s.seat_code FROM show_seat s JOIN showtime t USING (showtime_id)
		         JOIN layout_seat l ON l.layout_id = t.layout_id AND l.seat_code = s.seat_code
		        WHERE s.showtime_id = $1 ORDER BY l.row_index, l.position LIMIT $2)`, showtime, n); err != nil {
		t.Fatal(err)
	}
	rows, err := pool.Query(ctx, `SELECT seat_code FROM show_seat WHERE showtime_id = $1 AND status = 'AVAILABLE'`, showtime)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var left []string
	for rows.Next() {
		var c string
		if err := rows.Scan(&c); err != nil {
			t.Fatal(err)
		}
		left = append(left, c)
	}
	return left
}

// Visit opens a session row for a customer without a pass and returns its id.
func Visit(t testing.TB, pool *pgxpool.Pool, room, customer string) string {
	t.Helper()
	var id string
	err := pool.QueryRow(context.Background(), `
		INSERT INTO session (session_id, jti, room_id, place_id, customer_id, expires_at)
		VALUES (gen_random_uuid(), gen_random_uuid()::text, $1, 'place-' || $2, $2, clock_timestamp() + interval '15 minutes')
		RETURNING session_id::text`, room, customer).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
