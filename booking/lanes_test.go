package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"usher/booking/bookingtest"
)

// The picker's promise: a step is disjoint, and nobody is overtaken by one who
// wants the same.
func TestAStepIsDisjointAndNobodyIsOvertaken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var line []*pending
		for i := range rapid.IntRange(0, 40).Draw(t, "requests") {
			seats := rapid.SliceOfNDistinct(rapid.IntRange(1, 12), 1, 3, rapid.ID[int]).Draw(t, "seats")
			r := &takeRequest{holdID: fmt.Sprint(i), showtimeID: "s", scopeID: "s"}
			for _, s := range seats {
				r.seats = append(r.seats, fmt.Sprint(s))
			}
			r.customer = fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "customer"))
			if rapid.Bool().Draw(t, "keyed") {
				r.key = fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "key"))
			}
			line = append(line, &pending{take: r})
		}
		all := slices.Clone(line)
		p := newPicker(rapid.IntRange(1, 10).Draw(t, "max"))
		var order []*pending
		for rest := line; len(rest) > 0; {
			var step []*pending
			step, rest = p.pick(rest, time.Now())
			if len(step) == 0 || len(step) > p.max {
				t.Fatalf("a step of %d", len(step))
			}
			for i, a := range step {
				for _, b := range step[i+1:] {
					if overlap(a.take, b.take) {
						t.Fatalf("%+v and %+v in one step", a.take, b.take)
					}
				}
			}
			order = append(order, step...)
		}
		if len(order) != len(all) {
			t.Fatalf("%d of %d worked", len(order), len(all))
		}
		for i, a := range all {
			for _, b := range all[i+1:] {
				if overlap(a.take, b.take) && slices.Index(order, a) > slices.Index(order, b) {
					t.Fatalf("%+v was overtaken by %+v", a.take, b.take)
				}
			}
		}
	})
}

func overlap(a, b *takeRequest) bool {
	return a.customer == b.customer || slices.ContainsFunc(a.seats, func(s string) bool { return slices.Contains(b.seats, s) })
}

func TestAFullQueueAnswersBusyAtOnce(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{})
	of, err := New(pool, Options{
		Verifier: newPasses(t).verifier(), SessionSecret: make([]byte, 32), Lanes: 1, LaneQueue: 4, SweepEvery: -1,
		HoldDeadline: 30 * time.Second,
	}) // not running: what is queued stays
	if err != nil {
		t.Fatal(err)
	}
	fans := fansOf(t, pool, 5)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 4)
	for i := range 4 {
		go func() {
			_, _, err := of.Hold(ctx, fans[i], HoldRequest{ShowtimeID: "show", Seats: seats[i : i+1]})
			done <- err
		}()
	}
	for of.lanes[0].depth.Load() < 4 {
		time.Sleep(time.Millisecond)
	}
	asked := time.Now()
	if _, _, err := of.Hold(ctx, fans[4], HoldRequest{ShowtimeID: "show", Seats: seats[4:5]}); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(asked); took > 5*time.Second {
		t.Errorf("after %s", took)
	}
	if of.lanes[0].stats.shed.Load() != 1 {
		t.Error("the refusal is not counted")
	}
	stop := start(t, of) // now it runs: what waited is served
	defer stop()
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A limit row kept by somebody is its owner's trouble only.
func TestAKeptLimitRowDelaysItsOwnerOnly(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool, func(o *Options) { o.HoldDeadline = 5 * time.Second })
	fans := fansOf(t, pool, 10)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `INSERT INTO customer_limit (scope_id, customer_id) VALUES ('show', 'fan-0')`); err != nil {
		t.Fatal(err)
	}
	errs := race(10, func(i int) error {
		_, _, err := of.Hold(ctx, fans[i], HoldRequest{ShowtimeID: "show", Seats: seats[i : i+1]})
		return err
	})
	if !errors.Is(errs[0], ErrBusy) || count(errs, nil) != 9 {
		t.Errorf("got %v", errs)
	}
}

// B22: the connection is cut with the commit under way. The answer is "not
// known", and asking again finds the hold if there is one, never two.
func TestB22_AnUnknownCommitIsFoundAgain(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{Limit: 2})
	// The backend is killed inside the step; whether before or after the commit
	// depends on the trigger's kind.
	for name, deferred := range map[string]string{"before": "", "at the commit": "CONSTRAINT"} {
		who := strings.ReplaceAll(name, " ", "-")
		timing := map[string]string{"": "AFTER INSERT ON hold", "CONSTRAINT": "AFTER INSERT ON hold DEFERRABLE INITIALLY DEFERRED"}[deferred]
		if _, err := pool.Exec(ctx, fmt.Sprintf(`
			CREATE FUNCTION cut_%[1]d() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
			CREATE %[2]s TRIGGER cut_%[1]d %[3]s FOR EACH ROW WHEN (NEW.customer_id = '%[4]s' AND NEW.idempotency_key = 'k') EXECUTE FUNCTION cut_%[1]d()`,
			len(name), deferred, timing, who)); err != nil {
			t.Fatal(err)
		}
		of, s := office(t, pool), fan(t, pool, who)
		ask := HoldRequest{ShowtimeID: "show", Seats: []string{fmt.Sprintf("A%d", len(name))}, IdempotencyKey: "k"}
		if _, _, err := of.Hold(ctx, s, ask); !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := pool.Exec(ctx, fmt.Sprintf(`DROP TRIGGER cut_%d ON hold`, len(name))); err != nil {
			t.Fatal(err)
		}
		first, _, err := of.Hold(ctx, s, ask)
		if err != nil {
			t.Fatalf("%s: again: %v", name, err)
		}
		second, _, err := of.Hold(ctx, s, ask)
		if err != nil || second.ID != first.ID {
			t.Errorf("%s: a third time: %+v, %v", name, second, err)
		}
	}
	sane(t, pool)
}

// The connection dies while a lane is idle: nobody is told of it.
func TestALaneFindsANewConnection(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool, func(o *Options) { o.Lanes = 1 })
	fans := fansOf(t, pool, 6)
	hold := func(i int) error {
		_, _, err := of.Hold(ctx, fans[i], HoldRequest{ShowtimeID: "show", Seats: seats[i : i+1]})
		return err
	}
	if err := hold(0); err != nil {
		t.Fatal(err)
	}
	killLanes(t, pool)
	// The loss may show as one "not known", never as more.
	if err := hold(1); err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy) {
		t.Errorf("right after: %v", err)
	}
	for i := 2; i < 6; i++ {
		if err := hold(i); err != nil {
			t.Errorf("hold %d: %v", i, err)
		}
	}
}

func killLanes(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if n := number(t, pool, `SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'usher-lane-%'`); n == 0 {
		t.Fatal("no lane has a connection")
	}
}

func TestAFanWhoGoesAwayFindsTheHoldAgain(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of, ann := office(t, pool), fan(t, pool, "ann")
	for range 20 { // somewhere between before and after the step
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		_, _, _ = of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"D1", "D2"}})
		cancel()
	}
	h, _, err := of.Hold(context.Background(), ann, HoldRequest{ShowtimeID: "show", Seats: []string{"D1", "D2"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := number(t, pool, `SELECT count(*) FROM hold`); n != 1 {
		t.Errorf("%d holds, the answer is %s", n, h.ID)
	}
}

func TestManySweepersRecordEachHoldOnce(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	var keep Hold
	for i, s := range fansOf(t, pool, 30) {
		h, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: seats[2*i : 2*i+2]})
		if err != nil {
			t.Fatal(err)
		}
		keep = h
	}
	if _, err := pool.Exec(ctx, `WITH h AS (UPDATE hold SET expires_at = clock_timestamp() WHERE hold_id <> $1 RETURNING hold_id, expires_at)
		UPDATE show_seat s SET hold_expires_at = h.expires_at FROM h WHERE s.hold_id = h.hold_id`, keep.ID); err != nil {
		t.Fatal(err)
	}
	swept := make([]int64, 4)
	for _, err := range race(4, func(i int) (err error) {
		swept[i], _, err = of.Sweep(ctx)
		return err
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	if n := swept[0] + swept[1] + swept[2] + swept[3]; n != 29 {
		t.Errorf("recorded %d holds, want 29", n)
	}
	if n := number(t, pool, `SELECT count(*) FROM show_seat WHERE status = 'HELD'`); n != 2 {
		t.Errorf("%d seats are held, want the live hold's 2", n)
	}
	sane(t, pool)
}
