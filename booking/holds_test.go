package booking

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking/bookingtest"
)

// sane checks what must hold after any case: a seat belongs to one live hold at
// most, and a live hold has all its seats.
func sane(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	if n := number(t, pool, `SELECT count(*) FROM hold h CROSS JOIN LATERAL unnest(h.seats) w(seat)
		LEFT JOIN show_seat s ON s.showtime_id = h.showtime_id AND s.seat_code = w.seat
		WHERE h.state IN ('OPEN', 'PAYING') AND h.expires_at > clock_timestamp()
		  AND (s.hold_id IS DISTINCT FROM h.hold_id OR s.status <> 'HELD' OR s.hold_expires_at <> h.expires_at)`); n != 0 {
		t.Errorf("%d seats of live holds are not theirs", n)
	}
	if n := number(t, pool, `SELECT count(*) FROM show_seat s LEFT JOIN hold h USING (showtime_id, hold_id)
		WHERE s.status = 'HELD' AND s.hold_expires_at > clock_timestamp()
		  AND (h.hold_id IS NULL OR NOT s.seat_code = ANY(h.seats) OR h.state NOT IN ('OPEN', 'PAYING'))`); n != 0 {
		t.Errorf("%d held seats have no live hold", n)
	}
}

func TestB1_TheLastSeatGoesToOneOfFifty(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	last := bookingtest.Leave(t, pool, "show", 1)
	of := office(t, pool)
	fans := fansOf(t, pool, 50)
	errs := race(50, func(i int) error {
		_, _, err := of.Hold(context.Background(), fans[i], HoldRequest{ShowtimeID: "show", Seats: last})
		return err
	})
	if count(errs, nil) != 1 || count(errs, ErrSeatsUnavailable) != 49 {
		t.Errorf("%d took it, %d were told it is taken", count(errs, nil), count(errs, ErrSeatsUnavailable))
	}
	if n := number(t, pool, `SELECT count(*) FROM show_seat WHERE status = 'AVAILABLE'`); n != 0 {
		t.Errorf("%d left", n)
	}
	sane(t, pool)
}

func fansOf(t testing.TB, pool *pgxpool.Pool, n int) []Session {
	t.Helper()
	fans := make([]Session, n)
	for i := range fans {
		fans[i] = fan(t, pool, fmt.Sprintf("fan-%d", i))
	}
	return fans
}

func TestB2_TenLeftThirtyHoldsNobodyPays(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	left := bookingtest.Leave(t, pool, "show", 10)
	of := office(t, pool)
	fans := fansOf(t, pool, 30)
	errs := race(30, func(i int) error {
		_, _, err := of.Hold(context.Background(), fans[i], HoldRequest{ShowtimeID: "show", Seats: left[i%10 : i%10+1]})
		return err
	})
	if count(errs, nil) != 10 || count(errs, ErrSeatsUnavailable) != 20 {
		t.Errorf("%d holds, %d refused: %v", count(errs, nil), count(errs, ErrSeatsUnavailable), errs)
	}
	sane(t, pool)
}

func TestB3_TenIdenticalRequestsWithTenKeysAreOneHold(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{Limit: 6})
	of, ann := office(t, pool), fan(t, pool, "ann")
	var mu sync.Mutex
	ids, created := map[string]bool{}, 0
	errs := race(10, func(i int) error {
		h, c, err := of.Hold(context.Background(), ann, HoldRequest{
			ShowtimeID: "show", Seats: []string{"A1", "A2"}, IdempotencyKey: fmt.Sprintf("key-%d", i),
		})
		mu.Lock()
		defer mu.Unlock()
		ids[h.ID] = true
		if c {
			created++
		}
		return err
	})
	if count(errs, nil) != 10 || len(ids) != 1 || created != 1 {
		t.Errorf("%d answers, %d holds, %d created: %v", count(errs, nil), len(ids), created, errs)
	}
	if n := number(t, pool, `SELECT count(*) FROM hold`); n != 1 {
		t.Errorf("%d hold rows", n)
	}
}

func TestAKeyIsRememberedForOneRequestOnly(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of, ann, bob, ctx := office(t, pool), fan(t, pool, "ann"), fan(t, pool, "bob"), context.Background()
	ask := func(s Session, seats ...string) (Hold, bool, error) {
		return of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: seats, IdempotencyKey: "k"})
	}
	first, _, err := ask(ann, "A1", "A2")
	if err != nil {
		t.Fatal(err)
	}
	again, created, err := ask(ann, "A2", "A1") // the same request: order says nothing
	if err != nil || !created || again.ID != first.ID || !again.ExpiresAt.Equal(first.ExpiresAt) {
		t.Errorf("replay: %+v created %v, %v", again, created, err)
	}
	if _, _, err := ask(ann, "A3"); !errors.Is(err, ErrKeyReused) {
		t.Errorf("another body: %v", err)
	}
	if _, _, err := ask(bob, "A3"); err != nil {
		t.Errorf("another's key of the same text: %v", err)
	}
	if err := of.ReleaseHold(ctx, ann, first.ID); err != nil {
		t.Fatal(err)
	}
	if h, _, err := ask(ann, "A1", "A2"); err != nil || h.ID != first.ID || h.State != HoldReleased {
		t.Errorf("after the release the key gives %+v, %v", h, err)
	}
	// A refusal is not remembered: the same key may succeed later.
	refused := HoldRequest{ShowtimeID: "show", Seats: []string{"A3"}, IdempotencyKey: "later"}
	if _, _, err := of.Hold(ctx, ann, refused); !errors.Is(err, ErrSeatsUnavailable) {
		t.Errorf("bob's seat: %v", err)
	}
	if _, err := pool.Exec(ctx, `UPDATE show_seat SET hold_expires_at = clock_timestamp() WHERE seat_code = 'A3'`); err != nil {
		t.Fatal(err)
	}
	if _, _, err := of.Hold(ctx, ann, refused); err != nil {
		t.Errorf("the same key after a refusal: %v", err)
	}
}

// B5: whatever fails between the first row and the commit leaves nothing.
func TestB5_AFailureBetweenTwoRowsLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, trigger := range map[string]string{
		"second seat": `BEFORE UPDATE ON show_seat FOR EACH ROW WHEN (NEW.seat_code = 'A2' AND NEW.status = 'HELD')`,
		"hold row":    `BEFORE INSERT ON hold FOR EACH ROW WHEN (NEW.customer_id = 'ann')`,
		"limit row":   `BEFORE UPDATE ON customer_limit FOR EACH ROW WHEN (NEW.customer_id = 'ann')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ctx := bookingtest.Pool(t), context.Background()
			bookingtest.Seed(t, pool, bookingtest.Hall{})
			if _, err := pool.Exec(ctx, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN RAISE EXCEPTION 'injected'; END $$; CREATE TRIGGER fail `+trigger+` EXECUTE FUNCTION fail()`); err != nil {
				t.Fatal(err)
			}
			of, ann, bob := office(t, pool), fan(t, pool, "ann"), fan(t, pool, "bob")
			seats := [][]string{{"A1", "A2"}, {"B1", "B2"}}
			sessions := []Session{ann, bob}
			errs := race(2, func(i int) error { // together: the poisoned one must not spoil the other
				_, _, err := of.Hold(ctx, sessions[i], HoldRequest{ShowtimeID: "show", Seats: seats[i]})
				return err
			})
			if errs[0] == nil || errors.Is(errs[0], ErrSeatsUnavailable) {
				t.Errorf("the injected failure became %v", errs[0])
			}
			if errs[1] != nil {
				t.Errorf("the neighbour: %v", errs[1])
			}
			if n := number(t, pool, `SELECT count(*) FROM show_seat WHERE status <> 'AVAILABLE'`); n != 2 {
				t.Errorf("%d seats are held, want bob's 2", n)
			}
			if n := number(t, pool, `SELECT count(*) FROM hold`); n != 1 {
				t.Errorf("%d hold rows, want bob's", n)
			}
			sane(t, pool)
		})
	}
}

func TestB8_TheSameFanAskingForTheSameSeatsGetsTheSameHoldAndClock(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{Limit: 2})
	last := bookingtest.Leave(t, pool, "show", 2)
	of, ann, ctx := office(t, pool), fan(t, pool, "ann"), context.Background()
	ask := func(s Session, seats []string) (Hold, bool, error) {
		return of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: seats})
	}
	first, created, err := ask(ann, last)
	if err != nil || !created {
		t.Fatal(err)
	}
	second := fan(t, pool, "ann") // another tab's session of the same fan
	again, created, err := ask(second, []string{last[1], last[0]})
	if err != nil || created || again.ID != first.ID || !again.ExpiresAt.Equal(first.ExpiresAt) {
		t.Errorf("got %+v created %v %v, want %+v", again, created, err, first)
	}
	// A part of them is another wish; these seats are not free for it.
	if _, _, err := ask(ann, last[:1]); !errors.Is(err, ErrSeatsUnavailable) {
		t.Errorf("one of the two: %v", err)
	}
}

func TestB9_ExpiryNeedsNoSweeper(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{HoldSeconds: 1})
	ctx := context.Background()
	first := office(t, pool)
	ann, bob := fan(t, pool, "ann"), fan(t, pool, "bob")
	h, _, err := first.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"C3", "C4"}})
	if err != nil {
		t.Fatal(err)
	}
	second := office(t, pool) // its sweeper is off as well
	for {
		_, _, err := second.Hold(ctx, bob, HoldRequest{ShowtimeID: "show", Seats: []string{"C3"}})
		late := time.Since(h.ExpiresAt)
		if err == nil {
			if late < 0 {
				t.Errorf("taken %s before the expiry", -late)
			}
			break
		}
		if !errors.Is(err, ErrSeatsUnavailable) || late > time.Second {
			t.Fatalf("%s after the expiry: %v", late, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if got, err := first.GetHold(ctx, ann, h.ID); err != nil || got.State != HoldExpired {
		t.Errorf("the old hold reads %v, %v", got.State, err)
	}
	if err := first.ReleaseHold(ctx, ann, h.ID); err != nil {
		t.Errorf("releasing it: %v", err)
	}
	if n := number(t, pool, `SELECT count(*) FROM show_seat WHERE seat_code = 'C3' AND customer_id = 'bob'`); n != 1 {
		t.Error("the release of a dead hold took the new owner's seat")
	}
	sane(t, pool)
}

func TestB15_ShuffledSeatsDeadlockNobody(t *testing.T) {
	t.Parallel()
	url := bookingtest.URL(t)
	pool := bookingtest.PoolOn(t, url)
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{}) // 200
	offices := []*Office{office(t, pool), office(t, bookingtest.PoolOn(t, url))}
	const clients = 16
	runs := int64(10_000) // about 25 s with -race on two cores
	if testing.Short() {
		runs = 2_000
	}
	fans := fansOf(t, pool, clients)
	var left, took atomic.Int64
	left.Store(runs)
	errs := race(clients, func(i int) error {
		of := offices[i%2]
		for left.Add(-1) >= 0 {
			want := make([]string, 8)
			for j, p := range rand.Perm(len(seats))[:8] {
				want[j] = seats[p]
			}
			h, _, err := of.Hold(context.Background(), fans[i], HoldRequest{ShowtimeID: "show", Seats: want})
			switch {
			case err == nil:
				took.Add(1)
				if err := of.ReleaseHold(context.Background(), fans[i], h.ID); err != nil {
					return err
				}
			case !errors.Is(err, ErrSeatsUnavailable):
				return err
			}
		}
		return nil
	})
	if count(errs, nil) != clients {
		t.Errorf("somebody was told of more than a taken seat: %v", errs)
	}
	if took.Load() == 0 {
		t.Error("nobody took anything: the test shows nothing")
	}
	sane(t, pool)
}

// B19: 4 held, two tabs ask for 2 more each, the limit is 6: one may.
func TestB19_TheLimitHoldsAcrossTabsProcessesAndLanes(t *testing.T) {
	t.Parallel()
	for name, hall := range map[string]bookingtest.Hall{
		"one showtime":              {Limit: 6, PerRow: 40, Rows: 20},
		"two showtimes of an event": {Limit: 6, PerRow: 40, Rows: 20, EventScope: true},
	} {
		for _, processes := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d processes", name, processes), func(t *testing.T) {
				t.Parallel()
				url := bookingtest.URL(t)
				pool := bookingtest.PoolOn(t, url)
				// The server's own default must not matter: under it the recount would be stale.
				repeatableRead(t, pool)
				pool = bookingtest.PoolOn(t, url)
				seats := bookingtest.Seed(t, pool, hall)
				shows := []string{"show", "show"}
				if hall.EventScope {
					second := hall
					second.Showtime = "show-2"
					bookingtest.Seed(t, pool, second)
					shows[1] = "show-2"
				}
				offices := []*Office{office(t, pool)}
				if processes == 2 {
					offices = append(offices, office(t, bookingtest.PoolOn(t, url)))
				}
				for round := range 25 {
					raceForTheLimit(t, pool, offices, shows, seats[round*8:], fmt.Sprintf("fan-%d", round))
				}
				sane(t, pool)
			})
		}
	}
}

func repeatableRead(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var db string
	if err := pool.QueryRow(context.Background(), `SELECT current_database()`).Scan(&db); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(context.Background(),
		`ALTER DATABASE `+pgx.Identifier{db}.Sanitize()+` SET default_transaction_isolation = 'repeatable read'`); err != nil {
		t.Fatal(err)
	}
}

func raceForTheLimit(t *testing.T, pool *pgxpool.Pool, offices []*Office, shows, seats []string, name string) {
	t.Helper()
	ctx := context.Background()
	tabs := []Session{fan(t, pool, name), fan(t, pool, name)}
	if _, _, err := offices[0].Hold(ctx, tabs[0], HoldRequest{ShowtimeID: shows[0], Seats: seats[:4]}); err != nil {
		t.Fatal(err)
	}
	errs := race(2, func(i int) error {
		_, _, err := offices[i%len(offices)].Hold(ctx, tabs[i], HoldRequest{ShowtimeID: shows[i], Seats: seats[4+2*i : 6+2*i]})
		return err
	})
	if count(errs, nil) != 1 || count(errs, ErrTicketLimit) != 1 {
		t.Errorf("%s: %v", name, errs)
	}
	var limit *LimitError
	for _, err := range errs {
		if errors.As(err, &limit) && (limit.Limit != 6 || limit.Held != 6 || limit.Left != 0) {
			t.Errorf("%s was told %+v", name, *limit)
		}
	}
}

func TestB20_ALimitCountsWhatIsAliveOnly(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{Limit: 2, HoldSeconds: 1})
	of, ann := office(t, pool), fan(t, pool, "ann")
	h, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A1", "A2"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A3"}}); !errors.Is(err, ErrTicketLimit) {
		t.Errorf("over the limit: %v", err)
	}
	waitUntil(t, h.ExpiresAt)
	if _, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A3", "A4"}}); err != nil {
		t.Errorf("after the expiry, sweeper off: %v", err)
	}
}

// waitUntil waits for the database's instant; both clocks are this machine's.
func waitUntil(t testing.TB, at time.Time) {
	t.Helper()
	select {
	case <-time.After(time.Until(at) + time.Millisecond):
	case <-time.After(10 * time.Second):
		t.Fatal("never")
	}
}

// B23: somebody's transaction keeps one seat's row.
func TestB23_AStrangersRowLockDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool, func(o *Options) { o.HoldDeadline = 4 * time.Second })
	fans := fansOf(t, pool, 21)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT FROM show_seat WHERE showtime_id = 'show' AND seat_code = $1 FOR UPDATE`, seats[0]); err != nil {
		t.Fatal(err)
	}
	took := make([]time.Duration, 21)
	errs := race(21, func(i int) error {
		start := time.Now()
		_, _, err := of.Hold(ctx, fans[i], HoldRequest{ShowtimeID: "show", Seats: seats[5*i : 5*i+2]})
		took[i] = time.Since(start)
		return err
	})
	if !errors.Is(errs[0], ErrBusy) || took[0] < 3900*time.Millisecond {
		t.Errorf("the locked seat: %v after %s", errs[0], took[0])
	}
	for i := 1; i < 21; i++ {
		if errs[i] != nil || took[i] > 3*time.Second {
			t.Errorf("fan %d: %v after %s", i, errs[i], took[i])
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := of.Hold(ctx, fans[0], HoldRequest{ShowtimeID: "show", Seats: seats[:2]}); err != nil {
		t.Errorf("after the stranger left: %v", err)
	}
}

func Test200ClientsFor180SeatsSellEachOnce(t *testing.T) {
	t.Parallel()
	url := bookingtest.URL(t)
	pool := bookingtest.PoolOn(t, url)
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{Rows: 9, PerRow: 20})
	offices := []*Office{office(t, pool), office(t, bookingtest.PoolOn(t, url))}
	fans := fansOf(t, pool, 200)
	errs := race(200, func(i int) error {
		for _, p := range rand.Perm(len(seats)) { // tries until nothing is left
			_, _, err := offices[i%2].Hold(context.Background(), fans[i], HoldRequest{ShowtimeID: "show", Seats: seats[p : p+1]})
			if err == nil || !errors.Is(err, ErrSeatsUnavailable) {
				return err
			}
		}
		return ErrSeatsUnavailable
	})
	if count(errs, nil) != 180 || count(errs, ErrSeatsUnavailable) != 20 {
		t.Errorf("%d took a seat, %d found none", count(errs, nil), count(errs, ErrSeatsUnavailable))
	}
	if n := number(t, pool, `SELECT count(DISTINCT hold_id) FROM show_seat WHERE status = 'HELD'`); n != 180 {
		t.Errorf("%d seats are held", n)
	}
	sane(t, pool)
}
