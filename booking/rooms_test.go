package booking_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking"
	"usher/booking/bookingtest"
)

// aRoom is a pool and its one room.
func aRoom(t *testing.T, state string) (*pgxpool.Pool, *booking.Rooms) {
	t.Helper()
	pool := bookingtest.Pool(t)
	_, err := pool.Exec(context.Background(), `
		INSERT INTO room (room_id, title, state, rate_per_minute, cap) VALUES ('hall', 'Hall', $1, 60, 10)`, state)
	if err != nil {
		t.Fatal(err)
	}
	return pool, booking.NewRooms(pool)
}

func ptr[T any](v T) *T { return &v }

func TestRoomTransitions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	states := []string{"scheduled", "gathering", "drawing", "open", "paused", "closed"}
	allowed := map[string]string{ // verb → the states it works from; elsewhere it is refused
		"gather": "scheduled gathering",
		"draw":   "drawing",
		"open":   "scheduled gathering open paused closed",
		"pause":  "open paused",
		"resume": "open paused",
		"close":  "scheduled gathering open paused closed",
	}
	pool, rooms := aRoom(t, "open")
	for verb, from := range allowed {
		change, ok := booking.RoomVerb(verb)
		if !ok {
			t.Fatalf("%s is no verb", verb)
		}
		for _, state := range states {
			if _, err := pool.Exec(ctx, `UPDATE room SET state = $1`, state); err != nil {
				t.Fatal(err)
			}
			got, err := rooms.Change(ctx, "ann", "hall", change)
			var refused *booking.RoomTransitionError
			switch may := slices.Contains(strings.Fields(from), state); {
			case may && (err != nil || got.State != *change.State):
				t.Errorf("%s from %s: %v, %v", verb, state, got.State, err)
			case !may && (!errors.As(err, &refused) || refused.From != state || refused.To != *change.State || refused.Room != "hall"):
				t.Errorf("%s from %s: %v, want a refusal that names both", verb, state, err)
			}
		}
	}
	if _, ok := booking.RoomVerb("explode"); ok {
		t.Error("explode is a verb")
	}
}

func TestRoomChangeIsAuditedOnceAndVersioned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, rooms := aRoom(t, "open")
	before, err := rooms.Get(ctx, "hall")
	if err != nil || before.Version < time.Now().Add(-time.Hour).UnixMicro() {
		t.Fatalf("a new room's version lies behind a former database's: %+v, %v", before, err)
	}
	got, err := rooms.Change(ctx, "ann", "hall", booking.RoomChange{State: ptr("paused"), RatePerMinute: ptr(120), Cap: ptr(20), PriorityShare: ptr(45)})
	if err != nil || got.State != "paused" || got.RatePerMinute != 120 || got.Cap != 20 || got.PriorityShare != 45 || got.Version <= before.Version {
		t.Fatalf("%+v, %v", got, err)
	}
	same, err := rooms.Change(ctx, "bob", "hall", booking.RoomChange{State: ptr("paused"), Cap: ptr(20)})
	if err != nil || same != got {
		t.Errorf("a change that changes nothing: %+v, %v, want %+v", same, err, got)
	}
	for _, bad := range []booking.RoomChange{
		{Cap: ptr(-1)}, {RatePerMinute: ptr(-1)}, {Cap: ptr(booking.MaxRoomCap + 1)},
		{RatePerMinute: ptr(booking.MaxRatePerMinute + 1)}, {State: ptr("open"), Cap: ptr(-5)},
		{PriorityShare: ptr(-1)}, {PriorityShare: ptr(101)},
	} {
		var bounds *booking.RoomBoundsError
		if _, err := rooms.Change(ctx, "eve", "hall", bad); !errors.As(err, &bounds) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := rooms.Change(ctx, "ann", "nowhere", booking.RoomChange{Cap: ptr(1)}); !errors.Is(err, booking.ErrUnknownRoom) {
		t.Errorf("unknown room: %v", err)
	}
	if _, err := rooms.Get(ctx, "nowhere"); !errors.Is(err, booking.ErrUnknownRoom) {
		t.Errorf("unknown room: %v", err)
	}
	stored, err := rooms.Get(ctx, "hall")
	if err != nil || stored != got {
		t.Errorf("stored %+v, %v, want %+v", stored, err, got)
	}
	type entry struct{ Actor, Action, Subject, Before, After string }
	rows, _ := pool.Query(ctx, `
		SELECT actor, action, subject, detail->'before'->>'state' AS before, detail->'after'->>'state' AS after FROM audit_log`)
	log, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[entry])
	if err != nil || log != (entry{"ann", "room.change", "room:hall", "open", "paused"}) {
		t.Errorf("audit log: %+v, %v", log, err)
	}
}

// Twenty operators at once: every change is a version of its own, none is lost.
func TestRoomChangesRace(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, rooms := aRoom(t, "open")
	const operators = 20
	gate := make(chan struct{})
	versions := make([]int64, operators)
	var wg sync.WaitGroup
	for i := range operators {
		wg.Go(func() {
			<-gate
			change := booking.RoomChange{Cap: ptr(100 + i)}
			if i%2 == 1 {
				change = booking.RoomChange{RatePerMinute: ptr(100 + i)}
			}
			r, err := rooms.Change(ctx, "ann", "hall", change)
			if err != nil {
				t.Error(err)
			}
			versions[i] = r.Version
		})
	}
	close(gate)
	wg.Wait()
	slices.Sort(versions)
	if n := len(slices.Compact(slices.Clone(versions))); n != operators {
		t.Fatalf("%d versions for %d changes: %v", n, operators, versions)
	}
	var logged int
	if err := pool.QueryRow(ctx, `SELECT count(DISTINCT detail->'after'->>'version') FROM audit_log`).Scan(&logged); err != nil || logged != operators {
		t.Errorf("%d changes in the audit log, %v", logged, err)
	}
	// The last of both kinds stands: neither kind overwrote the other with what it had read.
	list, err := rooms.List(ctx)
	if err != nil || len(list) != 1 || list[0].Cap < 100 || list[0].RatePerMinute < 100 || list[0].Version != versions[operators-1] {
		t.Errorf("%+v, %v", list, err)
	}
}

// A room opens when its time has come, once, whoever looks and however many.
func TestRoomsOpenOnSchedule(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, rooms := aRoom(t, "paused")
	for id, row := range map[string][2]string{
		"due-a": {"scheduled", "-1 second"}, "due-b": {"scheduled", "-1 day"},
		"early": {"scheduled", "1 hour"}, "closed-before": {"closed", "-1 second"}, "gathering": {"gathering", "-1 second"},
		"drawing": {"drawing", "-1 second"},
	} {
		if _, err := pool.Exec(ctx, `INSERT INTO room (room_id, title, state, rate_per_minute, cap, opens_at)
			VALUES ($1, 'T', $2, 60, 10, clock_timestamp() + $3::text::interval)`, id, row[0], row[1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `INSERT INTO room (room_id, title, state, rate_per_minute, cap) VALUES ('no-time', 'T', 'scheduled', 60, 10)`); err != nil {
		t.Fatal(err)
	}
	before, err := rooms.Get(ctx, "due-a")
	if err != nil {
		t.Fatal(err)
	}
	const processes = 8
	gate := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var opened []string
	for range processes {
		wg.Go(func() {
			<-gate
			steps, err := rooms.OpenDue(ctx)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range steps {
				opened = append(opened, s.ID+" "+s.To)
			}
		})
	}
	close(gate)
	wg.Wait()
	slices.Sort(opened)
	if got := strings.Join(opened, " "); got != "due-a open due-b open gathering open" {
		t.Errorf("opened %q", got)
	}
	all, err := rooms.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, r := range all {
		states = append(states, r.ID+" "+r.State)
		if r.ID == "due-a" && r.Version <= before.Version {
			t.Errorf("version %d after %d: the edges would not learn it", r.Version, before.Version)
		}
	}
	if got, want := strings.Join(states, ", "), "closed-before closed, drawing drawing, due-a open, due-b open, early scheduled, gathering open, hall paused, no-time scheduled"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	rows, _ := pool.Query(ctx, `SELECT actor || ' ' || action || ' ' || subject || ' ' || (detail->'before'->>'state') || '>' || (detail->'after'->>'state')
		FROM audit_log ORDER BY subject`)
	log, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if got, want := strings.Join(log, "; "), "schedule room.change room:due-a scheduled>open; schedule room.change room:due-b scheduled>open; schedule room.change room:gathering gathering>open"; err != nil || got != want {
		t.Errorf("audit log %q, %v", got, err)
	}
	if ids, err := rooms.OpenDue(ctx); err != nil || len(ids) > 0 {
		t.Errorf("again: %v, %v", ids, err)
	}
}
