package payment_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
	"usher/booking/payment/sandbox"
)

// callback makes a signed delivery by hand.
func (s *shop) callback(id string, at time.Time, p sandbox.Payment) (func(string) string, []byte) {
	body, err := json.Marshal(sandbox.Event{Type: "payment." + p.State, CreatedAt: at, Payment: p})
	must(s.t, err)
	return signed(s.secret, id, at, body), body
}

func signed(secret []byte, id string, at time.Time, body []byte) func(string) string {
	h := http.Header{}
	h.Set(sandbox.HeaderID, id)
	h.Set(sandbox.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(sandbox.HeaderSignature, sandbox.Sign(secret, id, at, body))
	return h.Get
}

// paidEvent is what the provider would say of c's payment once paid.
func (s *shop) paidEvent(c payment.Checkout, amount int64, currency string) sandbox.Payment {
	return sandbox.Payment{
		ID: s.text(`SELECT provider_payment_id FROM payment WHERE payment_id = $1`, c.PaymentID), State: "paid",
		Reference: c.PaymentID, Amount: amount, CapturedAmount: amount, Currency: currency,
	}
}

func TestM7_NoAcknowledgementBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1").ID)
	header, body := s.callback("evt_1", time.Now(), s.paidEvent(c, bookingtest.Price, bookingtest.Currency))
	// A stranger's lock on the booking stalls the first delivery in the middle.
	ctx := context.Background()
	tx, err := s.pool.Begin(ctx)
	must(t, err)
	defer func() { _ = tx.Rollback(ctx) }()
	_, err = tx.Exec(ctx, `SELECT FROM booking FOR UPDATE`)
	must(t, err)
	var done atomic.Int64
	answers := make(chan error, 2)
	for range 2 {
		go func() {
			err := s.desk.Callback(ctx, header, body)
			done.Add(1)
			answers <- err
		}()
	}
	eventually(t, "both deliveries wait", func() bool {
		return s.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 2
	})
	if done.Load() != 0 {
		t.Error("acknowledged before it was durable")
	}
	must(t, tx.Rollback(ctx))
	for range 2 {
		must(t, <-answers)
	}
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	if n := s.number(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events", n)
	}
}

// The first delivery dies before its commit: the second does the work.
func TestM7_TheFirstDeliveryDies(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1").ID)
	header, body := s.callback("evt_1", time.Now(), s.paidEvent(c, bookingtest.Price, bookingtest.Currency))
	tx, err := s.pool.Begin(context.Background())
	must(t, err)
	_, err = tx.Exec(context.Background(), `SELECT FROM booking FOR UPDATE`)
	must(t, err)
	ctx, die := context.WithCancel(context.Background())
	first := make(chan error, 1)
	go func() { first <- s.desk.Callback(ctx, header, body) }()
	eventually(t, "the first waits", func() bool {
		return s.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	})
	die()
	if err := <-first; err == nil {
		t.Error("the first was acknowledged")
	}
	must(t, tx.Rollback(context.Background()))
	must(t, s.desk.Callback(context.Background(), header, body))
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
}

func TestM8_CrashAfterTheProviderAccepted(t *testing.T) {
	t.Parallel()
	crash := errors.New("crash")
	counted := &counting{after: func(payment.Created) error { return crash }}
	s := newShop(t, func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
	})
	ctx, f := context.Background(), s.fan("ana")
	h := s.hold(f, "A1")
	if _, _, err := s.desk.Checkout(ctx, f, h.ID, "k", nil); !errors.Is(err, payment.ErrProviderDown) {
		t.Fatalf("checkout: %v", err)
	}
	counted.after = nil
	// The same key goes on with the same attempt and the provider's own key.
	c, created, err := s.desk.Checkout(ctx, f, h.ID, "k", nil)
	must(t, err)
	if !created || s.number(`SELECT count(*) FROM payment`) != 1 {
		t.Errorf("created %v, %d payments", created, s.number(`SELECT count(*) FROM payment`))
	}
	s.pay(c, "paid")
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	s.balance() // one charge at the provider
}

// The process dies before it knows the provider's id, the fan pays all the same:
// the callback's reference finds the payment, or the reconciler's key does.
func TestM8_PaidThoughWeNeverHeardOfThePage(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]string{"callback": "paid", "reconciler": "never"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var page payment.Created
			counted := &counting{after: func(c payment.Created) error { page = c; return errors.New("crash") }}
			s := newShop(t, func(o *setup) {
				o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
			})
			f := s.fan("ana")
			h := s.hold(f, "A1")
			if _, _, err := s.desk.Checkout(context.Background(), f, h.ID, "k", nil); err == nil {
				t.Fatal("no crash")
			}
			counted.after = nil
			id := s.text(`SELECT booking_id::text FROM booking`)
			s.pay(payment.Checkout{PaymentURL: page.URL}, find)
			if find == "never" {
				s.exec(`UPDATE payment SET expires_at = clock_timestamp()`)
				must(t, s.desk.Reconcile(context.Background()))
			}
			s.awaitBooking(f, id, payment.BookingConfirmed)
			s.balance()
		})
	}
}

func TestM8_AKeyWhoseOwnerDiedIsFreeAfterItsLease(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, f := context.Background(), s.fan("ana")
	h := s.hold(f, "A1")
	first, _, err := s.desk.Checkout(ctx, f, h.ID, "k", nil)
	must(t, err)
	// As a crash between the two transactions leaves it.
	s.exec(`UPDATE idempotency SET state = 'RUNNING', response = NULL`)
	s.exec(`UPDATE payment SET provider_payment_id = NULL, payment_url = ''`)
	if _, _, err := s.desk.Checkout(ctx, f, h.ID, "k", nil); !errors.Is(err, payment.ErrInProgress) {
		t.Errorf("within the lease: %v", err)
	}
	s.exec(`UPDATE idempotency SET locked_until = clock_timestamp()`)
	again, _, err := s.desk.Checkout(ctx, f, h.ID, "k", nil)
	must(t, err)
	if again != first {
		t.Errorf("%+v after %+v", again, first)
	}
}

func TestM9_ASlowProviderHoldsNoTransaction(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	counted := &counting{before: func() { <-release }}
	s := newShop(t, func(o *setup) {
		o.hall.Rows = 6
		o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
	})
	const fans = 20
	answers := make(chan error, fans)
	for i := range fans {
		f := s.fan("fan" + strconv.Itoa(i))
		h := s.hold(f, s.seats[i])
		go func() {
			_, _, err := s.desk.Checkout(context.Background(), f, h.ID, "k", nil)
			answers <- err
		}()
	}
	eventually(t, "all are at the provider", func() bool { return counted.creates.Load() == fans })
	if n := s.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`); n != 0 {
		t.Errorf("%d sessions idle in transaction", n)
	}
	if n := s.pool.Stat().AcquiredConns(); n > 3 { // lanes and job queue keep theirs
		t.Errorf("%d connections taken while nobody uses one", n)
	}
	s.hold(s.fan("quick"), s.seats[fans]) // holds go on
	close(release)
	for range fans {
		must(t, <-answers)
	}
}

func TestProviderDownAnswersAndTheSeatsStayHeld(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(o *setup) {
		o.desk.ProviderTimeout = 50 * time.Millisecond
		o.provider = func(payment.Provider) payment.Provider { return silent{} }
	})
	f := s.fan("ana")
	h := s.hold(f, "A1")
	for range 8 { // past the breaker's threshold
		if _, _, err := s.desk.Checkout(context.Background(), f, h.ID, "k", nil); !errors.Is(err, payment.ErrProviderDown) {
			t.Fatalf("checkout: %v", err)
		}
	}
	start := time.Now()
	_, _, err := s.desk.Checkout(context.Background(), f, h.ID, "k", nil)
	if !errors.Is(err, payment.ErrProviderDown) || time.Since(start) > 40*time.Millisecond {
		t.Errorf("the breaker is not open: %v after %s", err, time.Since(start))
	}
	if n := s.number(`SELECT count(*) FROM show_seat WHERE hold_id = $1 AND hold_expires_at > clock_timestamp()`, h.ID); n != 1 {
		t.Error("the seat is lost")
	}
	if n := s.number(`SELECT count(*) FROM payment`); n != 1 {
		t.Errorf("%d attempts", n)
	}
}

func TestM11_Signatures(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, f, now := context.Background(), s.fan("ana"), time.Now()
	c := s.checkout(f, s.hold(f, "A1").ID)
	p := s.paidEvent(c, bookingtest.Price, bookingtest.Currency)
	_, body := s.callback("evt_1", now, p)
	re, err := json.MarshalIndent(sandbox.Event{Type: "payment.paid", CreatedAt: now, Payment: p}, "", " ")
	must(t, err)
	for name, d := range map[string]struct {
		header func(string) string
		body   []byte
	}{
		"re-encoded":      {signed(s.secret, "evt_1", now, body), re},
		"301 s old":       {signed(s.secret, "evt_1", now.Add(-301*time.Second), body), body},
		"301 s ahead":     {signed(s.secret, "evt_1", now.Add(302*time.Second), body), body},
		"wrong secret":    {signed(secret(), "evt_1", now, body), body},
		"no header":       {http.Header{}.Get, body},
		"of another id":   {func(n string) string { return map[string]string{sandbox.HeaderID: "evt_2"}[n] }, body},
		"truncated":       {signed(s.secret, "evt_1", now, body), body[:len(body)-1]},
		"another's event": {signed(s.secret, "evt_1", now, []byte("{}")), body},
	} {
		if err := s.desk.Callback(ctx, d.header, d.body); !errors.Is(err, payment.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.number(`SELECT count(*) FROM provider_event`); n != 0 {
		t.Errorf("%d events recorded", n)
	}
	must(t, s.desk.Callback(ctx, signed(s.secret, "evt_1", now.Add(-299*time.Second), body), body))
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
}

func TestM11_ARotatedSecret(t *testing.T) {
	t.Parallel()
	older, newer := secret(), secret()
	client, err := sandbox.New(sandbox.Options{BaseURL: "http://x.test", APIKey: "k", CallbackURL: "http://y.test", Secrets: [][]byte{newer, older}})
	must(t, err)
	body, now := []byte(`{"type":"payment.paid","payment":{"state":"paid","id":"p"}}`), time.Now()
	for name, key := range map[string][]byte{"new": newer, "old": older} {
		if _, err := client.ParseCallback(signed(key, "evt", now, body), body, now); err != nil {
			t.Errorf("%s secret: %v", name, err)
		}
	}
}

func TestAnotherAmountOrCurrencyIsGivenBackWhole(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]sandbox.Payment{
		"less":     {CapturedAmount: 1, Currency: bookingtest.Currency},
		"more":     {CapturedAmount: bookingtest.Price + 1, Currency: bookingtest.Currency},
		"currency": {CapturedAmount: bookingtest.Price, Currency: "USD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paidOut := &counting{beforeRefund: func() error { return nil }}
			s := newShop(t, func(o *setup) {
				o.provider = func(p payment.Provider) payment.Provider { paidOut.Provider = p; return paidOut }
			})
			f := s.fan("ana")
			c := s.checkout(f, s.hold(f, "A1").ID)
			header, body := s.callback("evt_1", time.Now(), s.paidEvent(c, wrong.CapturedAmount, wrong.Currency))
			must(t, s.desk.Callback(context.Background(), header, body))
			b := s.read(f, c.BookingID)
			if b.State != payment.BookingFailed || b.Reason != payment.ReasonAmountMismatch {
				t.Errorf("%s: %s", b.State, b.Reason)
			}
			if n := s.number(`SELECT sum(amount) FROM refund`); n != wrong.CapturedAmount {
				t.Errorf("refund of %d", n)
			}
			if got := s.text(`SELECT status FROM show_seat WHERE seat_code = 'A1'`); got != "AVAILABLE" {
				t.Errorf("seat %s", got)
			}
		})
	}
}

func TestAnUnknownPaymentIsRecordedAndAcknowledged(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i, p := range []sandbox.Payment{
		{ID: "sp_x", Reference: "0193a000-0000-7000-8000-000000000000", State: "paid", CapturedAmount: 5, Currency: "EUR"},
		{ID: "sp_y", Reference: "", State: "paid", CapturedAmount: 5, Currency: "EUR"},
		{ID: "sp_z", Reference: "x", State: "of a later version"},
	} {
		header, body := s.callback("evt_"+strconv.Itoa(i), time.Now(), p)
		must(t, s.desk.Callback(context.Background(), header, body))
	}
	body := []byte("not json \x00 \xff")
	must(t, s.desk.Callback(context.Background(), signed(s.secret, "evt_raw", time.Now(), body), body))
	if n := s.number(`SELECT count(*) FROM provider_event`); n != 4 {
		t.Errorf("%d events recorded", n)
	}
}

// Two pages of one booking, both paid: the second's money goes back.
func TestASecondCaptureIsGivenBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c1 := s.checkout(f, h.ID)
	s.exec(`UPDATE payment SET expires_at = clock_timestamp()`) // our clock says over, the page is still open
	c2 := s.checkout(f, h.ID)
	if c1.PaymentID == c2.PaymentID {
		t.Fatal("one attempt")
	}
	errs := race(2, func(i int) error {
		c := []payment.Checkout{c1, c2}[i]
		header, body := s.callback("evt_"+c.PaymentID, time.Now(), s.paidEvent(c, bookingtest.Price, bookingtest.Currency))
		return s.desk.Callback(context.Background(), header, body)
	})
	if count(errs, nil) != 2 {
		t.Fatal(errs)
	}
	if got := s.text(`SELECT string_agg(state, ' ' ORDER BY state) FROM payment`); got != "CAPTURED REFUND_DUE" {
		t.Errorf("payments %s", got)
	}
	s.awaitBooking(f, c1.BookingID, payment.BookingConfirmed)
}

func TestAbandonedBookingsFail(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c := s.checkout(f, h.ID)
	s.expireHold(h.ID, time.Second)
	must(t, s.desk.Reconcile(context.Background()))
	b := s.read(f, c.BookingID)
	if b.State != payment.BookingFailed || b.Payment.State != payment.PaymentFailed || b.Reason != payment.ReasonHoldExpired {
		t.Errorf("booking %s (%s), payment %s", b.State, b.Reason, b.Payment.State)
	}
	// Its page can no longer be paid on.
	s.pay(c, "paid")
	if o, err := s.client.Fetch(context.Background(), s.text(`SELECT provider_payment_id FROM payment`)); err != nil || o.Status != payment.StatusExpired {
		t.Errorf("%+v, %v", o, err)
	}
	// Nor can its hold.
	_, _, err := s.desk.Checkout(context.Background(), f, h.ID, "again", nil)
	if !errors.Is(err, booking.ErrHoldExpired) {
		t.Errorf("checkout: %v", err)
	}
	s.balance()
}

func TestACheckoutNamesTheSeatsThatAreLost(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1", "A2")
	s.exec(`UPDATE show_seat SET status = 'BOOKED', hold_id = gen_random_uuid(), hold_expires_at = NULL, booking_id = gen_random_uuid() WHERE seat_code = 'A2'`)
	_, _, err := s.desk.Checkout(context.Background(), f, h.ID, "k", nil)
	var lost *payment.HoldLostError
	if !errors.As(err, &lost) || !errors.Is(err, booking.ErrHoldExpired) || len(lost.Seats) != 1 || lost.Seats[0] != "A2" {
		t.Errorf("%v", err)
	}
	if n := s.number(`SELECT (SELECT count(*) FROM booking) + (SELECT count(*) FROM payment) + (SELECT count(*) FROM idempotency)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// Every step of a confirm in one transaction: a failure at the last leaves nothing.
func TestB5_AFailureInTheMiddleLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1", "A2").ID)
	s.exec(`ALTER TABLE outbox ADD CONSTRAINT injected CHECK (type <> 'BookingConfirmed')`)
	header, body := s.callback("evt_1", time.Now(), s.paidEvent(c, 2*bookingtest.Price, bookingtest.Currency))
	if err := s.desk.Callback(context.Background(), header, body); err == nil {
		t.Fatal("acknowledged")
	}
	if n := s.number(`SELECT (SELECT count(*) FROM ticket) + (SELECT count(*) FROM outbox) + (SELECT count(*) FROM provider_event)
	                       + (SELECT count(*) FROM show_seat WHERE status = 'BOOKED')`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	s.exec(`ALTER TABLE outbox DROP CONSTRAINT injected`)
	must(t, s.desk.Callback(context.Background(), header, body))
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
}

// The server's default isolation level changes nothing.
func TestRepeatableReadAsTheDefaultChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	must(t, s.pool.QueryRow(context.Background(), `SELECT 1`).Scan(new(int)))
	s.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`)
	s.pool.Reset()
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1").ID)
	s.pay(c, "paid-twice")
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	must(t, booking.InTx(context.Background(), s.pool, func(tx pgx.Tx) error { return nil }))
	s.balance()
}
