package booking

import (
	"context"
	"testing"
	"time"

	"usher/booking/bookingtest"
)

// The median of the first holds, living and ended visits together; those who hold
// nothing, and what a fan holds later, say nothing.
func TestTheTimeToAFirstHoldIsReported(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	if _, err := pool.Exec(ctx, `
		INSERT INTO session (session_id, jti, room_id, place_id, customer_id, created_at, expires_at, ended_at, end_reason)
		SELECT gen_random_uuid(), 'j' || n, 'room', 'p' || n, 'c' || n, now() - interval '5 minutes', now() + interval '10 minutes',
		       CASE WHEN n % 2 = 0 THEN now() - interval '10 seconds' END, CASE WHEN n % 2 = 0 THEN 'left' END
		  FROM generate_series(1, 9) n`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `
		INSERT INTO hold (showtime_id, hold_id, scope_id, customer_id, session_id, seats, seat_count, amount, currency, expires_at, created_at)
		SELECT 'show', gen_random_uuid(), 'show', customer_id, session_id, '{A1}', 1, 1, 'EUR', now() + interval '5 minutes',
		       created_at + make_interval(secs => d + later)
		  FROM session, LATERAL (SELECT 10 * substr(jti, 2)::int AS d) s, (VALUES (0), (100)) v(later)
		 WHERE jti IN ('j1', 'j2', 'j3', 'j8', 'j9')`); err != nil {
		t.Fatal(err)
	}
	if err := of.takeHoldDelays(ctx); err != nil {
		t.Fatal(err)
	}
	r := reportWith(t, of, func(RoomReport) bool { return true })
	if r.Lanes.HoldDelay != 30*time.Second {
		t.Errorf("median %s, want 30s of 10, 20, 30, 80, 90", r.Lanes.HoldDelay)
	}
}

func TestTheValveOfARoomIsChangedAndAudited(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	rooms := NewRooms(pool)
	valve := "adaptive"
	r, err := rooms.Change(ctx, "olga", "room", RoomChange{Valve: &valve})
	if err != nil || r.Valve != valve {
		t.Fatalf("%+v, %v", r, err)
	}
	if again, err := rooms.Get(ctx, "room"); err != nil || again.Valve != valve || again.Version != r.Version {
		t.Errorf("%+v, %v", again, err)
	}
	if n := number(t, pool, `SELECT count(*) FROM audit_log WHERE actor = 'olga' AND detail->'before'->>'valve' = 'fixed' AND detail->'after'->>'valve' = 'adaptive'`); n != 1 {
		t.Errorf("%d lines in the audit log", n)
	}
	for _, bad := range []string{"", "Adaptive", "off"} {
		if _, err := rooms.Change(ctx, "olga", "room", RoomChange{Valve: &bad}); err == nil {
			t.Errorf("valve %q was taken", bad)
		}
	}
	if again, err := rooms.Get(ctx, "room"); err != nil || again.Version != r.Version {
		t.Errorf("a refused change changed something: %+v, %v", again, err)
	}
}
