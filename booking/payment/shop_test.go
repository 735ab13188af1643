package payment_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/admission/pass"
	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
	"usher/booking/payment/sandbox"
	"usher/booking/payment/sandboxhttp"
	"usher/internal/basehttp"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) {
	// Each run of the state machine is some hundred transactions; -rapid.checks
	// asks for more.
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	os.Exit(devstacktest.Main(m))
}

// shop is a box office, a desk and the sandbox provider over one database, each
// running as in a process of its own.
type shop struct {
	t        testing.TB
	pool     *pgxpool.Pool
	office   *booking.Office
	desk     *payment.Desk
	provider *sandboxhttp.Server
	client   *sandbox.Client
	secret   []byte
	seats    []string
	stopDesk func()
	got      atomic.Int64 // deliveries that reached us
	keys     atomic.Int64
}

// setup changes what a shop is built from.
type setup struct {
	hall     bookingtest.Hall
	desk     payment.Options
	sandbox  sandboxhttp.Options
	provider func(payment.Provider) payment.Provider // wraps the client
}

func newShop(t testing.TB, change ...func(*setup)) *shop {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	s := &shop{t: t, pool: bookingtest.Pool(t), secret: secret()}
	set := setup{
		hall:    bookingtest.Hall{Rows: 3, PerRow: 10},
		desk:    payment.Options{ReconcileEvery: -1, ReturnURL: func(id string) string { return "http://shop.test/bookings/" + id }},
		sandbox: sandboxhttp.Options{APIKey: "key", Secret: s.secret, DeliverPause: 20 * time.Millisecond},
	}
	for _, c := range change {
		c(&set)
	}
	s.seats = bookingtest.Seed(t, s.pool, set.hall)

	callback := httptest.NewServer(http.HandlerFunc(s.deliver))
	t.Cleanup(callback.Close)
	set.sandbox.Log = quiet
	var base string
	s.provider, base = serveSandbox(t, set.sandbox)
	var err error
	s.client, err = sandbox.New(sandbox.Options{BaseURL: base, APIKey: set.sandbox.APIKey, Secrets: [][]byte{s.secret}, CallbackURL: callback.URL})
	must(t, err)
	set.desk.Log, set.desk.Provider = quiet, s.client
	if set.provider != nil {
		set.desk.Provider = set.provider(s.client)
	}
	s.desk, err = payment.New(s.pool, set.desk)
	must(t, err)
	s.stopDesk = run(t, s.desk.Run)

	ring, err := pass.NewRing(time.Now().Add(-time.Hour))
	must(t, err)
	s.office, err = booking.New(s.pool, booking.Options{
		Log: quiet, SessionSecret: secret(), SweepEvery: -1, TakesPerMin: -1,
		Verifier: pass.NewVerifier(pass.RingSource(func() pass.Ring { return ring }, time.Now), nil),
	})
	must(t, err)
	run(t, s.office.Run)
	return s
}

func serveSandbox(t testing.TB, o sandboxhttp.Options) (*sandboxhttp.Server, string) {
	t.Helper()
	srv, err := sandboxhttp.New(o)
	must(t, err)
	web := basehttp.NewServer(basehttp.Options{Name: "sandbox", Log: slog.New(slog.DiscardHandler)})
	srv.Register(web.App)
	addr, err := web.Listen(context.Background(), "127.0.0.1:0")
	must(t, err)
	run(t, srv.Run)
	run(t, func(ctx context.Context) error {
		done := make(chan error, 1)
		go func() { done <- web.Serve() }()
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return errors.Join(web.Shutdown(stop), <-done)
	})
	return srv, "http://" + addr.String()
}

// run starts f and stops it at the test's end.
func run(t testing.TB, f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// deliver is the callback's endpoint.
func (s *shop) deliver(w http.ResponseWriter, r *http.Request) {
	s.got.Add(1)
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = s.desk.Callback(r.Context(), r.Header.Get, raw)
	}
	switch {
	case errors.Is(err, payment.ErrSignature):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func secret() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition, not for a time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// race calls f n times at once behind a gate.
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

func count(errs []error, target error) (n int) {
	for _, err := range errs {
		if target == nil && err == nil || target != nil && errors.Is(err, target) {
			n++
		}
	}
	return n
}
