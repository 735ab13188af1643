package payment_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
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

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

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
	// receive, when set, handles deliveries instead of the desk.
	receive atomic.Pointer[http.HandlerFunc]
	got     atomic.Int64 // deliveries that reached us
	keys    atomic.Int64
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
	run(t, s.desk.Run)

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
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
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
	if f := s.receive.Load(); f != nil {
		(*f)(w, r)
		return
	}
	s.toDesk(w, r)
}

func (s *shop) toDesk(w http.ResponseWriter, r *http.Request) {
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

// dropCallbacks loses every delivery without the provider noticing.
func (s *shop) dropCallbacks() {
	f := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	s.receive.Store(&f)
}

func (s *shop) fan(name string) booking.Session {
	s.t.Helper()
	return booking.Session{ID: bookingtest.Visit(s.t, s.pool, "room", name), Room: "room", Customer: name}
}

// hold takes seats or fails the test.
func (s *shop) hold(f booking.Session, seats ...string) booking.Hold {
	s.t.Helper()
	h, _, err := s.office.Hold(context.Background(), f, booking.HoldRequest{ShowtimeID: "show", Seats: seats})
	must(s.t, err)
	return h
}

// checkout opens a payment under a key of its own.
func (s *shop) checkout(f booking.Session, holdID string) payment.Checkout {
	s.t.Helper()
	c, _, err := s.desk.Checkout(context.Background(), f, holdID, s.key(), nil)
	must(s.t, err)
	return c
}

func (s *shop) key() string { return fmt.Sprintf("key-%d", s.keys.Add(1)) }

// pay chooses an outcome on the payment page and returns where the page sent us.
func (s *shop) pay(c payment.Checkout, outcome string, more ...string) string {
	s.t.Helper()
	form := url.Values{"outcome": {outcome}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	web := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := web.PostForm(c.PaymentURL, form)
	must(s.t, err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("pay %s: status %d", outcome, res.StatusCode)
	}
	return res.Header.Get("Location")
}

func (s *shop) read(f booking.Session, id string) payment.Booking {
	s.t.Helper()
	b, err := s.desk.Booking(context.Background(), f, id)
	must(s.t, err)
	return b
}

// awaitBooking waits until the booking has state.
func (s *shop) awaitBooking(f booking.Session, id, state string) payment.Booking {
	s.t.Helper()
	var b payment.Booking
	eventually(s.t, "booking "+state, func() bool {
		b = s.read(f, id)
		return b.State == state
	})
	return b
}

// awaitRefunds waits until nothing is owed to anybody.
func (s *shop) awaitRefunds() {
	s.t.Helper()
	eventually(s.t, "refunds paid out", func() bool { return s.number(`SELECT count(*) FROM refund WHERE state = 'DUE'`) == 0 })
}

// expireHold moves a hold's end into the past, by the database's clock.
func (s *shop) expireHold(id string, by time.Duration) {
	s.t.Helper()
	s.exec(`UPDATE hold SET expires_at = clock_timestamp() - make_interval(secs => $2) WHERE hold_id = $1`, id, by.Seconds())
	s.exec(`UPDATE show_seat SET hold_expires_at = clock_timestamp() - make_interval(secs => $2) WHERE hold_id = $1 AND status = 'HELD'`, id, by.Seconds())
}

func (s *shop) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.pool.Exec(context.Background(), sql, args...)
	must(s.t, err)
}

func (s *shop) number(sql string, args ...any) (n int64) {
	s.t.Helper()
	must(s.t, s.pool.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

func (s *shop) text(sql string, args ...any) (v string) {
	s.t.Helper()
	must(s.t, s.pool.QueryRow(context.Background(), sql, args...).Scan(&v))
	return v
}

// balance checks that no money is lost, in our books and against the provider's.
func (s *shop) balance() {
	s.t.Helper()
	captured := s.number(`SELECT COALESCE(sum(captured_amount), 0) FROM payment`)
	booked := s.number(`SELECT COALESCE(sum(amount - refunded_amount), 0) FROM booking WHERE state IN ('CONFIRMED', 'REFUNDED')`)
	refunded := s.number(`SELECT COALESCE(sum(amount), 0) FROM refund`)
	paidOut := s.number(`SELECT COALESCE(sum(amount), 0) FROM refund WHERE state = 'DONE'`)
	if captured != booked+refunded {
		s.t.Errorf("captured %d, booked %d, refunded %d", captured, booked, refunded)
	}
	theirs := s.provider.Totals()[bookingtest.Currency]
	if theirs.Captured != captured || theirs.Refunded != paidOut {
		s.t.Errorf("the provider took %d and gave back %d; we say %d and %d", theirs.Captured, theirs.Refunded, captured, paidOut)
	}
	for what, sql := range map[string]string{
		"tickets without a sold seat": `SELECT count(*) FROM ticket k LEFT JOIN show_seat s USING (showtime_id, seat_code)
			WHERE k.state = 'VALID' AND (s.status <> 'BOOKED' OR s.booking_id <> k.booking_id)`,
		"sold seats without a ticket": `SELECT count(*) FROM show_seat s WHERE s.status = 'BOOKED' AND NOT EXISTS
			(SELECT FROM ticket k WHERE k.showtime_id = s.showtime_id AND k.seat_code = s.seat_code AND k.booking_id = s.booking_id AND k.state = 'VALID')`,
		"confirmed bookings without one captured payment": `SELECT count(*) FROM booking b WHERE b.state = 'CONFIRMED' AND 1 <>
			(SELECT count(*) FROM payment p WHERE p.booking_id = b.booking_id AND p.state = 'CAPTURED')`,
		"bookings decided without their event": `SELECT count(*) FROM booking b WHERE b.state <> 'PENDING' AND NOT EXISTS
			(SELECT FROM outbox o WHERE o.booking_id = b.booking_id)`,
		"payments given back and not closed": `SELECT count(*) FROM payment p WHERE p.state = 'REFUND_DUE' AND NOT EXISTS
			(SELECT FROM refund r WHERE r.payment_id = p.payment_id AND r.state = 'DUE')`,
	} {
		if n := s.number(sql); n != 0 {
			s.t.Errorf("%d %s", n, what)
		}
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
