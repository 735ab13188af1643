package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking/bookingtest"
)

// text is a small file; words change it: "seats: 1-4" is replaced by "seats: 1-5".
func text(t *testing.T, oldNew ...string) File {
	t.Helper()
	const small = `
rooms:
  - {id: hall, title: Hall, ratePerMinute: 60, cap: 10}
venues:
  - id: house
    name: House
    timezone: Europe/Lisbon
    seatCodes: "{row}{seat}"
    sections: [{id: S, price: seat, rows: A-B, seats: 1-4}]
events:
  - id: play
    venue: house
    title: A play
    kind: cinema
    currency: EUR
    limits: {maxPerHold: 4, limitScope: showtime, hold: 10m}
    prices: {seat: {name: Seat, amount: 1000}}
    showtimes: [{id: play-one, room: hall, startsAt: 2030-06-01 20:00}]
`
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(small, oldNew[i]) {
			t.Fatalf("the file has no %q", oldNew[i])
		}
	}
	f, err := Parse("small.yaml", []byte(strings.NewReplacer(oldNew...).Replace(small)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustApply(t *testing.T, pool *pgxpool.Pool, f File) Summary {
	t.Helper()
	s, err := Apply(context.Background(), pool, f, "ann")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

func one[T any](t *testing.T, pool *pgxpool.Pool, sql string) T {
	t.Helper()
	var v T
	if err := pool.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// content is everything an apply may write, as one text.
func content(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var b strings.Builder
	for _, table := range []string{"room", "venue", "layout", "layout_seat", "event", "price_class", "showtime", "show_seat", "audit_log"} {
		b.WriteString(table + one[string](t, pool, fmt.Sprintf(`SELECT COALESCE(string_agg(r::text, E'\n' ORDER BY r::text), '') FROM %s r`, table)))
	}
	return b.String()
}

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	if s := mustApply(t, pool, text(t)); !s.Changed() || len(s.Changes) != 5 {
		t.Errorf("first: %s", s)
	}
	before := content(t, pool)
	s := mustApply(t, pool, text(t))
	if s.Changed() || s.String() != "nothing changed\n" || s.Unchanged != 4 {
		t.Errorf("second: %s%d unchanged", s, s.Unchanged)
	}
	if content(t, pool) != before {
		t.Error("the second apply wrote something")
	}
}

func TestApplyChanges(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t))
	before := one[int64](t, pool, `SELECT version FROM room`)
	s := mustApply(t, pool, text(t, "cap: 10", "cap: 20", "A play", "A better play", "amount: 1000", "amount: 1200",
		"maxPerHold: 4", "maxPerHold: 3, maxPerCustomer: 3", "hold: 10m", "hold: 5m", "20:00", "21:00", "name: House", "name: New House"))
	want := `changed room hall: cap 10 → 20
changed venue house: name House → New House
changed event play: title A play → A better play, maxPerHold 4 → 3, maxPerCustomer 0 → 3, hold 10m0s → 5m0s, price class seat amount 1000 → 1200
changed showtime play-one: startsAt 2030-06-01T19:00:00Z → 2030-06-01T20:00:00Z
`
	if s.String() != want {
		t.Errorf("got\n%swant\n%s", s, want)
	}
	e, err := Show(context.Background(), pool, "play")
	if err != nil || e.Title != "A better play" || e.MaxPerCustomer != 3 || e.Hold != 5*time.Minute || e.Prices[0].Amount != 1200 ||
		e.Times[0].StartsAt.Format("2006-01-02 15:04") != "2030-06-01 20:00" || e.Venue != "New House" {
		t.Errorf("%+v, %v", e, err)
	}
	if v := one[int64](t, pool, `SELECT version FROM room`); v <= before {
		t.Errorf("room version %d after %d", v, before)
	}
	if n := one[int](t, pool, `SELECT count(*) FROM audit_log WHERE actor = 'ann' AND action = 'catalog.apply' AND jsonb_array_length(detail->'changes') > 3`); n != 2 {
		t.Errorf("%d audit rows, want 2", n)
	}
	if list, err := List(context.Background(), pool); err != nil || len(list) != 1 || list[0].Showtimes != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := Show(context.Background(), pool, ""); !errors.Is(err, ErrUnknownEvent) {
		t.Errorf("no event: %v", err)
	}
}

func TestApplyKeepsAnOperatorsPause(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t))
	exec(t, pool, `UPDATE room SET state = 'paused', rate_per_minute = 5, version = version + 1`)
	mustApply(t, pool, text(t, "cap: 10", "cap: 11, state: open"))
	if got := one[string](t, pool, `SELECT state || ' ' || rate_per_minute || ' ' || cap FROM room`); got != "paused 60 11" {
		t.Errorf("room is %s", got)
	}
}

// Sold out, ten seats more: they are free as soon as the apply is done, and nothing sold is touched.
func TestB7_SeatsAddedWhileOnSale(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t))
	exec(t, pool, `UPDATE show_seat SET status = 'BOOKED', hold_id = gen_random_uuid(), customer_id = 'c', booking_id = gen_random_uuid()`)
	before := one[string](t, pool, `SELECT string_agg(s::text, ' ' ORDER BY seat_code) FROM show_seat s`)
	s := mustApply(t, pool, text(t, "seats: 1-4", "seats: 1-9"))
	if !strings.Contains(s.String(), "(10 seats added, 0 removed)") {
		t.Error(s)
	}
	if n := one[int](t, pool, `SELECT count(*) FROM show_seat WHERE status = 'AVAILABLE'`); n != 10 {
		t.Errorf("%d free, want 10", n)
	}
	if after := one[string](t, pool, `SELECT string_agg(s::text, ' ' ORDER BY seat_code) FROM show_seat s WHERE status = 'BOOKED'`); after != before {
		t.Error("a sold seat was touched")
	}
	if n := one[int](t, pool, `SELECT count(*) FROM layout`); n != 2 {
		t.Errorf("%d layouts: the old one must stay as it was", n)
	}
	// And back: the ten are free, so they may go.
	if s := mustApply(t, pool, text(t)); !strings.Contains(s.String(), "(0 seats added, 10 removed)") {
		t.Error(s)
	}
}

func TestSeatsSomebodyHasAreNotTakenAway(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t))
	exec(t, pool, `UPDATE show_seat SET status = 'BOOKED', hold_id = gen_random_uuid(), customer_id = 'c', booking_id = gen_random_uuid() WHERE seat_code = 'A4';
		UPDATE show_seat SET status = 'HELD', hold_id = gen_random_uuid(), customer_id = 'c', hold_expires_at = now() + interval '1 hour' WHERE seat_code = 'B3';
		UPDATE show_seat SET status = 'HELD', hold_id = gen_random_uuid(), customer_id = 'c', hold_expires_at = now() - interval '1 s' WHERE seat_code = 'B4'`)
	before := content(t, pool)
	smaller := text(t, "seats: 1-4", "seats: 1-2", "A play", "Another play")
	_, err := Apply(context.Background(), pool, smaller, "ann")
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 1 ||
		faults.Error() != "small.yaml:18: showtimes.play-one: these seats cannot be taken away: A4 (booked), B3 (held)" {
		t.Errorf("%v", err)
	}
	if content(t, pool) != before {
		t.Error("a refused file changed something")
	}
	exec(t, pool, `UPDATE show_seat SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL, booking_id = NULL WHERE seat_code IN ('A4', 'B3')`)
	mustApply(t, pool, smaller) // B4's hold is over: nobody has it
	if got := one[string](t, pool, `SELECT string_agg(seat_code, ' ' ORDER BY seat_code) FROM show_seat`); got != "A1 A2 B1 B2" {
		t.Errorf("seats are %s", got)
	}
}

// A seat that is being taken while it is taken away: either the fan has it and the file is refused, or it is gone.
func TestTakeRacesRemoval(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t))
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `UPDATE show_seat SET status = 'HELD', hold_id = gen_random_uuid(), customer_id = 'c',
		hold_expires_at = clock_timestamp() + interval '1 hour' WHERE seat_code = 'A4'`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Apply(ctx, pool, text(t, "seats: 1-4", "seats: 1-3"), "ann")
		done <- err
	}()
	for one[int](t, pool, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == 0 {
		select {
		case err := <-done:
			t.Fatalf("did not wait for the fan: %v", err)
		default:
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "A4 (held)") {
		t.Errorf("%v", err)
	}
}

// Every process carries both for a moment, and a take is not asked what it believes.
func TestWhatCannotChangeOnceThereAreShowtimes(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t))
	before := content(t, pool)
	for _, f := range []File{
		text(t, "EUR", "USD"), text(t, "limitScope: showtime", "limitScope: event"),
		text(t, "id: play\n", "id: other\n"), // the showtime is another event's
	} {
		if _, err := Apply(context.Background(), pool, f, "ann"); !errors.As(err, new(Faults)) {
			t.Errorf("%s %s %s: %v", f.Events[0].ID, f.Events[0].Currency, f.Events[0].LimitScope, err)
		}
	}
	if content(t, pool) != before {
		t.Error("a refused file changed something")
	}
	exec(t, pool, `DELETE FROM show_seat; DELETE FROM showtime`)
	mustApply(t, pool, text(t, "EUR", "USD", "limitScope: showtime", "limitScope: event"))
	if got := one[string](t, pool, `SELECT scope_id FROM showtime`); got != "event:play" {
		t.Errorf("scope is %s", got)
	}
}

// An apply that waits for a fan's seats must keep nobody from coming in and no
// operator from pausing the room.
func TestAnApplyUnderWayDelaysNoRoom(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t))
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT FROM show_seat WHERE seat_code = 'A4' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := Apply(ctx, pool, text(t, "seats: 1-4", "seats: 1-3", "cap: 10", "cap: 11"), "ann")
		done <- err
	}()
	for one[int](t, pool, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) == 0 {
		select {
		case err := <-done:
			t.Fatalf("did not wait for the fan: %v", err)
		default:
		}
	}
	soon, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`SET LOCAL lock_timeout = '2s'`,
		`INSERT INTO session (session_id, jti, room_id, place_id, customer_id, expires_at) VALUES (gen_random_uuid(), 'j', 'hall', 'p', 'c', now())`,
		`UPDATE room SET state = 'paused', version = version + 1 WHERE room_id = 'hall'`,
	} {
		if _, err := soon.Exec(ctx, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if err := soon.Commit(ctx); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := one[string](t, pool, `SELECT state || ' ' || cap FROM room`); got != "paused 11" {
		t.Errorf("the room is %s", got)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	s, err := Plan(context.Background(), pool, text(t))
	if err != nil || len(s.Changes) != 5 {
		t.Errorf("%s %v", s, err)
	}
	if n := one[int](t, pool, `SELECT (SELECT count(*) FROM room) + (SELECT count(*) FROM layout) + (SELECT count(*) FROM audit_log)`); n != 0 {
		t.Errorf("%d rows written", n)
	}
}

func TestRelativeStartStaysAsStored(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t, "2030-06-01 20:00", "+21d 20:00"))
	starts := one[time.Time](t, pool, `SELECT starts_at FROM showtime`)
	lisbon, _ := time.LoadLocation("Europe/Lisbon")
	if got := starts.In(lisbon); got.Hour() != 20 || time.Until(got) < 19*24*time.Hour || time.Until(got) > 23*24*time.Hour {
		t.Errorf("starts at %s", got)
	}
	exec(t, pool, `UPDATE showtime SET starts_at = '2031-01-01T20:00:00Z'`)
	if s := mustApply(t, pool, text(t, "2030-06-01 20:00", "+21d 20:00")); s.Changed() {
		t.Error(s)
	}
}

func TestLeftAndGone(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	mustApply(t, pool, text(t, "amount: 1000}", "amount: 1000}, old: {name: Old, amount: 1}"))
	s := mustApply(t, pool, text(t, "play-one", "play-two"))
	if got := s.String(); !strings.Contains(got, "left showtime play-one: not in the file") || !strings.Contains(got, "price class old is gone") {
		t.Error(got)
	}
	if n := one[int](t, pool, `SELECT count(*) FROM showtime`); n != 2 {
		t.Errorf("%d showtimes", n)
	}
}

func TestManyAppliesAtOnce(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	summaries := make([]Summary, 8)
	f := text(t)
	for i := range summaries {
		wg.Go(func() {
			<-gate
			var err error
			if summaries[i], err = Apply(context.Background(), pool, f, "ann"); err != nil {
				t.Error(err)
			}
		})
	}
	close(gate)
	wg.Wait()
	did := 0
	for _, s := range summaries {
		if s.Changed() {
			did++
		}
	}
	if did != 1 {
		t.Errorf("%d applies did something, want 1", did)
	}
}
