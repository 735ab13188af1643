package payment_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"usher/booking/bookingtest"
	"usher/booking/payment"
)

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

// The page is open at the provider and the second commit fails: the same key goes
// on at once, with the same page.
func TestB22_TheAnswerCannotBeCommitted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, f := context.Background(), s.fan("ana")
	h := s.hold(f, "A1")
	s.exec(`ALTER TABLE idempotency ADD CONSTRAINT injected CHECK (state <> 'DONE')`)
	if _, _, err := s.desk.Checkout(ctx, f, h.ID, "k", nil); err == nil {
		t.Fatal("answered")
	}
	s.exec(`ALTER TABLE idempotency DROP CONSTRAINT injected`)
	c, created, err := s.desk.Checkout(ctx, f, h.ID, "k", nil)
	must(t, err)
	if !created || s.number(`SELECT count(*) FROM payment`) != 1 {
		t.Errorf("created %v, %d payments", created, s.number(`SELECT count(*) FROM payment`))
	}
	s.pay(c, "paid")
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	s.balance()
}
