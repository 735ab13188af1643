package booking

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/admission/pass"
	"usher/booking/bookingtest"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", "25") // each of them walks a real database; -rapid.checks overrides
	os.Exit(devstacktest.Main(m))
}

// passes mints passes for a test's office.
type passes struct {
	key  pass.Key
	ring pass.Ring
}

func newPasses(t testing.TB) *passes {
	t.Helper()
	ring, err := pass.NewRing(time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ring.Signer(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &passes{key: key, ring: ring}
}

func (p *passes) verifier() *pass.Verifier {
	return pass.NewVerifier(pass.RingSource(func() pass.Ring { return p.ring }, time.Now), nil)
}

func (p *passes) mint(t testing.TB, c pass.Claims) string {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	if c.IssuedAt.IsZero() {
		c.IssuedAt = now
	}
	if c.ExpiresAt.IsZero() {
		c.ExpiresAt = c.IssuedAt.Add(pass.Life)
	}
	c.Run = 1
	token, err := pass.Mint(p.key, c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// office is a running office over pool; it stops at the test's end.
func office(t testing.TB, pool *pgxpool.Pool, change ...func(*Options)) *Office {
	t.Helper()
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	o := Options{
		Verifier: newPasses(t).verifier(), SessionSecret: secret, SweepEvery: -1, TakesPerMin: -1,
		HoldDeadline: 30 * time.Second, // a slow machine is not busy; tests of the deadline set their own
	}
	for _, c := range change {
		c(&o)
	}
	of, err := New(pool, o)
	if err != nil {
		t.Fatal(err)
	}
	start(t, of)
	return of
}

func start(t testing.TB, of *Office) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- of.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// fan is a customer with a session.
func fan(t testing.TB, pool *pgxpool.Pool, name string) Session {
	t.Helper()
	return Session{ID: bookingtest.Visit(t, pool, "room", name), Room: "room", Customer: name}
}

// race calls f n times at once behind a gate and returns the errors.
func race(n int, f func(i int) error) []error {
	errs := make([]error, n)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-gate
			errs[i] = f(i)
		})
	}
	close(gate)
	wg.Wait()
	return errs
}

// count tells how many errors are target (nil: successes).
func count(errs []error, target error) (n int) {
	for _, err := range errs {
		if target == nil && err == nil || target != nil && errors.Is(err, target) {
			n++
		}
	}
	return n
}

func number(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEveryStatementPreparesAgainstTheSchema(t *testing.T) {
	t.Parallel()
	bookingtest.Prepares(t, statements)
}

func TestAHoldIsTakenReadAndReleased(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of, ctx, ann, bob := office(t, pool), context.Background(), fan(t, pool, "ann"), fan(t, pool, "bob")
	h, created, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"B2", "B10"}})
	if err != nil || !created {
		t.Fatalf("hold: %v, created %v", err, created)
	}
	if h.Amount != 2*bookingtest.Price || h.Currency != bookingtest.Currency || len(h.Seats) != 2 || h.State != HoldOpen {
		t.Errorf("got %+v", h)
	}
	if got, err := of.GetHold(ctx, ann, h.ID); err != nil || !got.ExpiresAt.Equal(h.ExpiresAt) || got.State != HoldOpen {
		t.Errorf("read again: %+v, %v", got, err)
	}
	if _, err := of.GetHold(ctx, bob, h.ID); !errors.Is(err, ErrUnknownHold) {
		t.Errorf("another's hold: %v", err)
	}
	if err := of.ReleaseHold(ctx, bob, h.ID); !errors.Is(err, ErrUnknownHold) {
		t.Errorf("release another's hold: %v", err)
	}
	var lost *SeatsError
	_, _, err = of.Hold(ctx, bob, HoldRequest{ShowtimeID: "show", Seats: []string{"B1", "B2"}})
	if !errors.As(err, &lost) || len(lost.Seats) != 1 || lost.Seats[0] != "B2" {
		t.Errorf("got %v, want B2 taken", err)
	}
	for range 2 { // the second time it is gone already
		if err := of.ReleaseHold(ctx, ann, h.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := of.Hold(ctx, bob, HoldRequest{ShowtimeID: "show", Seats: []string{"B1", "B2"}}); err != nil {
		t.Errorf("after the release: %v", err)
	}
}
