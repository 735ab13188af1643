package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/admission/pass"
	"usher/booking/bookingtest"
)

// twoOffices are two processes over one database that trust the same passes.
func twoOffices(t *testing.T) (pool *pgxpool.Pool, p *passes, a, b *Office) {
	t.Helper()
	pool, p = bookingtest.Pool(t), newPasses(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	same := func(o *Options) { o.Verifier, o.SessionSecret = p.verifier(), []byte(strings.Repeat("s", 32)) }
	return pool, p, office(t, pool, same), office(t, bookingtest.PoolOn(t, pool.Config().ConnString()), same)
}

func claims(name string) pass.Claims {
	return pass.Claims{ID: "jti-" + name, Room: "room", PlaceID: placeID(name), Customer: name}
}

func placeID(name string) string { return fmt.Sprintf("%032x", name)[:32] }

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestQ12_OneFanABatchOrEverybodyIsRefusedByTheOtherOffice(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, order := range map[string]Revocation{
		"customer":  {Room: "room", Customers: []string{"ana"}, Reason: "bot"},
		"batch":     {Room: "room", Customers: []string{"zoe", "ana", "ana", "tom"}, Reason: "bots"},
		"place":     {Room: "room", Places: []string{placeID("ana")}, Reason: "bot"},
		"pass":      {Room: "room", Passes: []string{"jti-ana"}, Reason: "leaked"},
		"everybody": {Room: "room", EverybodyBefore: &time.Time{}, Reason: "rehearsal"},
		"all rooms": {Customers: []string{"ana"}, Reason: "bot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, p, a, b := twoOffices(t)
			first, again := p.mint(t, claims("ana")), claims("ana")
			again.ID += "-2"
			second := p.mint(t, again)
			s, _, err := b.OpenSession(ctx, first, "", "")
			if err != nil {
				t.Fatal(err)
			}
			if s, err = b.Session(ctx, s.Token); err != nil { // and remembered for a second
				t.Fatal(err)
			}
			ben, _, err := b.OpenSession(ctx, p.mint(t, claims("ben")), "", "")
			if err != nil {
				t.Fatal(err)
			}
			h, _, err := b.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"A1", "A2"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = a.Revoke(ctx, "olga", order); err != nil {
				t.Fatal(err)
			}
			// At once, and by the statement: this office need not have heard of it.
			if _, _, err := b.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"B1"}}); !errors.Is(err, ErrRevoked) {
				t.Errorf("a take after the revocation: %v", err)
			}
			if _, _, err := b.OpenSession(ctx, second, "", ""); !errors.Is(err, ErrRevoked) && name != "pass" {
				t.Errorf("an exchange after the revocation: %v", err)
			}
			soon(t, "the first pass is refused", func() bool {
				_, _, err := b.OpenSession(ctx, first, "", s.Token)
				return errors.Is(err, ErrRevoked)
			})
			soon(t, "the session is refused", func() bool {
				_, err := b.Session(ctx, s.Token)
				return errors.Is(err, ErrRevoked)
			})
			soon(t, "the session has ended as revoked and the hold is released", func() bool {
				var ended bool
				err := pool.QueryRow(ctx, `SELECT (SELECT end_reason = 'revoked' FROM session WHERE session_id = $1)
					AND (SELECT state = 'RELEASED' FROM hold WHERE hold_id = $2)
					AND (SELECT bool_and(status = 'AVAILABLE') FROM show_seat WHERE seat_code IN ('A1', 'A2'))`, s.ID, h.ID).Scan(&ended)
				return err == nil && ended
			})
			_, _, err = b.Hold(ctx, ben, HoldRequest{ShowtimeID: "show", Seats: []string{"C1"}})
			if everybody := order.EverybodyBefore != nil; errors.Is(err, ErrRevoked) != everybody {
				t.Errorf("another fan's take: %v", err)
			}
			if got, err := b.ReaderSession(ctx, s.Token); err != nil || !got.Revoked { // own bookings stay readable
				t.Errorf("reading: %+v, %v", got, err)
			}
		})
	}
}

// The instant of "everybody before" is the pass': one granted after it is good.
func TestQ12_EverybodyBeforeSparesLaterPasses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, p, a, b := twoOffices(t)
	old, later := claims("ana"), claims("ben")
	old.IssuedAt, old.ExpiresAt = time.Now().Add(-time.Minute).Truncate(time.Second), time.Now().Add(time.Minute).Truncate(time.Second)
	later.IssuedAt = time.Now().Add(-10 * time.Second).Truncate(time.Second)
	before := time.Now().Add(-30 * time.Second)
	if _, err := a.Revoke(ctx, "olga", Revocation{Room: "room", EverybodyBefore: &before, Reason: "rehearsal"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.OpenSession(ctx, p.mint(t, old), "", ""); !errors.Is(err, ErrRevoked) {
		t.Errorf("a pass from before: %v", err)
	}
	s, _, err := b.OpenSession(ctx, p.mint(t, later), "", "")
	if err != nil {
		t.Fatalf("a pass from after: %v", err)
	}
	if _, _, err := b.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}}); err != nil {
		t.Errorf("a take by it: %v", err)
	}
}

func TestQ12_NothingIsTakenAfterTheRevocation(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, _, a, b := twoOffices(t)
	const fans = 50
	order := Revocation{Room: "room", Reason: "bots"}
	visits := make([]Session, fans)
	for i := range visits {
		visits[i] = fan(t, pool, fmt.Sprintf("bot-%d", i))
		order.Customers = append(order.Customers, visits[i].Customer)
	}
	var taken atomic.Int64
	count := func() (n int) {
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM hold`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	atOrder := -1
	errs := race(fans+1, func(i int) error {
		if i == fans {
			soon(t, "some have taken", func() bool { return taken.Load() >= 5 })
			_, err := a.Revoke(ctx, "olga", order)
			atOrder = count()
			return err
		}
		o := []*Office{a, b}[i%2]
		for n := 0; ; n++ { // take and give back until refused
			seat := fmt.Sprintf("%c%d", 'A'+i%10, 1+(i/10+5*n)%20)
			h, _, err := o.Hold(ctx, visits[i], HoldRequest{ShowtimeID: "show", Seats: []string{seat}})
			switch {
			case errors.Is(err, ErrRevoked):
				return nil
			case err == nil:
				taken.Add(1)
				if err := o.ReleaseHold(ctx, visits[i], h.ID); err != nil {
					return err
				}
			case errors.Is(err, ErrSessionEnded), !errors.Is(err, ErrSeatsUnavailable) && !errors.Is(err, ErrBusy):
				return err
			}
		}
	})
	for i, err := range errs {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if after := count(); after != atOrder {
		t.Errorf("%d holds when the revocation had committed, %d in the end", atOrder, after)
	}
	soon(t, "nobody named has a session or a seat", func() bool {
		var n int
		err := pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM session WHERE ended_at IS NULL) +
			(SELECT count(*) FROM show_seat WHERE status <> 'AVAILABLE')`).Scan(&n)
		return err == nil && n == 0
	})
}

// A transaction that hangs with the fence must not keep an operator from revoking.
func TestQ12_AStuckSaleDoesNotStopTheOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, _, a, b := twoOffices(t)
	ana := fan(t, pool, "ana")
	stuck, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stuck.Rollback(ctx) }()
	if err := FenceTx(ctx, stuck); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Revoke(ctx, "olga", Revocation{Room: "room", Customers: []string{"ana"}, Reason: "bot"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Hold(ctx, ana, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}}); !errors.Is(err, ErrRevoked) {
		t.Errorf("%v", err)
	}
}

func TestQ12_LiftedAndListed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, p, a, b := twoOffices(t)
	id, err := a.Revoke(ctx, "olga", Revocation{Room: "room", Customers: []string{"ana", "ben"}, Reason: "bots"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.OpenSession(ctx, p.mint(t, claims("ana")), "", ""); !errors.Is(err, ErrRevoked) {
		t.Fatalf("before: %v", err)
	}
	if err := b.Lift(ctx, "otto", "nowhere", id); !errors.Is(err, ErrUnknownRoom) {
		t.Errorf("another room's: %v", err)
	}
	if err := b.Lift(ctx, "otto", "room", id); err != nil {
		t.Fatal(err)
	}
	if err := b.Lift(ctx, "otto", "room", id); !errors.Is(err, ErrUnknownRevocation) {
		t.Errorf("lifted twice: %v", err)
	}
	soon(t, "ana is let in again", func() bool {
		_, _, err := a.OpenSession(ctx, p.mint(t, claims("ana")), "", "")
		return err == nil
	})
	orders, err := a.Revocations(ctx, "room", 10)
	if err != nil || len(orders) != 1 {
		t.Fatalf("%+v, %v", orders, err)
	}
	if o := orders[0]; o.ID != id || o.Actor != "olga" || o.LiftedBy != "otto" || o.LiftedAt.IsZero() || o.Customers != 2 ||
		!slices.Equal(o.Subjects, []string{"customer:ana", "customer:ben"}) {
		t.Errorf("%+v", o)
	}
	var lines int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM audit_log WHERE subject = 'room:room' AND
		(actor = 'olga' AND action = 'room.revoke' OR actor = 'otto' AND action = 'room.revoke.lift')`).Scan(&lines); err != nil || lines != 2 {
		t.Errorf("%d audit lines, %v", lines, err)
	}
}

func TestRevocationsThatAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, _, a, _ := twoOffices(t)
	future := time.Now().Add(time.Hour)
	many := make([]string, MaxRevokeCall+1)
	for i := range many {
		many[i] = fmt.Sprintf("c%d", i)
	}
	for name, r := range map[string]Revocation{
		"nobody":          {Room: "room", Reason: "x"},
		"no reason":       {Room: "room", Customers: []string{"a"}, Reason: "  "},
		"long reason":     {Room: "room", Customers: []string{"a"}, Reason: strings.Repeat("x", 501)},
		"empty id":        {Room: "room", Customers: []string{"a", ""}, Reason: "x"},
		"control":         {Room: "room", Customers: []string{"a\x00b"}, Reason: "x"},
		"not a place":     {Room: "room", Places: []string{"A5"}, Reason: "x"},
		"too many":        {Room: "room", Customers: many, Reason: "x"},
		"in the future":   {Room: "room", EverybodyBefore: &future, Reason: "x"},
		"a very long id":  {Room: "room", Passes: []string{strings.Repeat("j", 257)}, Reason: "x"},
		"not valid UTF-8": {Room: "room", Customers: []string{"a\xff"}, Reason: "x"},
	} {
		var e *RevocationError
		if _, err := a.Revoke(ctx, "olga", r); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.Revoke(ctx, "olga", Revocation{Room: "nowhere", Customers: []string{"a"}, Reason: "x"}); !errors.Is(err, ErrUnknownRoom) {
		t.Errorf("unknown room: %v", err)
	}
	for range 2 {
		if _, err := a.Revoke(ctx, "olga", Revocation{Room: "room", Customers: many[:MaxRevokeCall], Reason: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	var e *RevocationError
	if _, err := a.Revoke(ctx, "olga", Revocation{Room: "room", Customers: many[:2], Reason: "x"}); !errors.As(err, &e) {
		t.Errorf("more than may be in force: %v", err)
	}
	var rows int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM revocation`).Scan(&rows); err != nil || rows != 2*MaxRevokeCall {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// A take that comes while an order is being committed waits for it, and finds it: the
// statement alone would look at what was there before.
func TestQ12_ATakeWaitsForTheOrderBeforeIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, _, a, _ := twoOffices(t)
	ana := fan(t, pool, "ana")
	order, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = order.Rollback(ctx) }()
	for _, sql := range []string{SQLFenceOut, `INSERT INTO revocation (revocation_id, kind, subject, actor) VALUES (gen_random_uuid(), 'customer', 'ana', 'olga')`} {
		if _, err := order.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	answer := make(chan error, 1)
	go func() {
		for {
			_, _, err := a.Hold(ctx, ana, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}})
			if !errors.Is(err, ErrBusy) { // a lane waits a quarter of a second for a lock
				answer <- err
				return
			}
		}
	}()
	soon(t, "the take waits, or has come through", func() bool {
		return len(answer) > 0 || number(t, pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`) > 0
	})
	if err := order.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, ErrRevoked) {
		t.Errorf("%v", err)
	}
}

// And an order waits for the takes before it: none commits after it.
func TestQ12_AnOrderWaitsForTheTakeBeforeIt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, _, a, _ := twoOffices(t)
	a.fenceWait = "30s"
	sale, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sale.Rollback(ctx) }()
	if err := FenceTx(ctx, sale); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := a.Revoke(ctx, "olga", Revocation{Room: "room", Customers: []string{"ana"}, Reason: "bot"})
		done <- err
	}()
	soon(t, "the order waits", func() bool {
		if len(done) > 0 {
			t.Fatal("the order did not wait")
		}
		return number(t, pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`) > 0
	})
	if err := sale.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
