package payment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
)

func TestEveryStatementPreparesAgainstTheSchema(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	conn, err := pool.Acquire(context.Background())
	must(t, err)
	defer conn.Release()
	for name, sql := range payment.Statements() {
		if _, err := conn.Conn().Prepare(context.Background(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFromHoldToTicket(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1", "A2")
	c := s.checkout(f, h.ID)
	if back := s.pay(c, "paid"); back != "http://shop.test/bookings/"+c.BookingID {
		t.Errorf("sent back to %q", back)
	}
	b := s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	if len(b.Tickets) != 2 || b.Tickets[0].SeatCode != "A1" || b.Tickets[0].Amount+b.Tickets[1].Amount != b.Amount {
		t.Errorf("tickets %+v", b.Tickets)
	}
	if b.Tickets[0].Code == b.Tickets[1].Code || len(b.Tickets[0].Code) < 26 {
		t.Errorf("codes %q and %q", b.Tickets[0].Code, b.Tickets[1].Code)
	}
	if b.Payment.State != payment.PaymentCaptured || b.Payment.URL != "" {
		t.Errorf("payment %+v", b.Payment)
	}
	if got := s.text(`SELECT end_reason FROM session WHERE session_id = $1`, f.ID); got != "confirmed" {
		t.Errorf("session ended: %q", got)
	}
	if got := s.text(`SELECT payload->>'type' || ' ' || seq FROM outbox`); got != "BookingConfirmed 1" {
		t.Errorf("outbox: %q", got)
	}
	// Other people's bookings do not exist.
	if _, err := s.desk.Booking(context.Background(), s.fan("eve"), c.BookingID); !errors.Is(err, payment.ErrUnknownBooking) {
		t.Errorf("another fan reads it: %v", err)
	}
	s.balance()
}

func TestB10_PaidAfterExpiryIsRefusedRefundedAndTheNewOwnerUntouched(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ana, ben := s.fan("ana"), s.fan("ben")
	h := s.hold(ana, "A1", "A2")
	c := s.checkout(ana, h.ID)
	s.expireHold(h.ID, time.Second)
	newer := s.hold(ben, "A1")
	s.pay(c, "paid")
	b := s.awaitBooking(ana, c.BookingID, payment.BookingFailed)
	if b.Reason != payment.ReasonSeatsResold {
		t.Errorf("reason %q", b.Reason)
	}
	if got := s.text(`SELECT hold_id::text || status FROM show_seat WHERE seat_code = 'A1'`); got != newer.ID+"HELD" {
		t.Errorf("the new owner's seat: %s", got)
	}
	if got := s.text(`SELECT status FROM show_seat WHERE seat_code = 'A2'`); got != "AVAILABLE" {
		t.Errorf("the other seat: %s", got)
	}
	s.awaitRefunds()
	s.balance()
}

// The clock that decides is the database's, read after the wait for the locks.
func TestB10_ExpiryDuringTheWaitForALock(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c := s.checkout(f, h.ID)
	ctx := context.Background()
	tx, err := s.pool.Begin(ctx)
	must(t, err)
	defer func() { _ = tx.Rollback(ctx) }()
	// A stranger locks the seat without changing it, the hold ends, and only then
	// the stranger goes.
	_, err = tx.Exec(ctx, `SELECT FROM show_seat WHERE seat_code = 'A1' FOR UPDATE`)
	must(t, err)
	s.exec(`UPDATE hold SET expires_at = clock_timestamp() + interval '1 second' WHERE hold_id = $1`, h.ID)
	s.pay(c, "paid")
	eventually(t, "confirm waits", func() bool {
		return s.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	eventually(t, "hold over", func() bool {
		return s.number(`SELECT count(*) FROM hold WHERE hold_id = $1 AND expires_at <= clock_timestamp()`, h.ID) == 1
	})
	must(t, tx.Rollback(ctx))
	s.awaitBooking(f, c.BookingID, payment.BookingFailed)
	s.awaitRefunds()
	s.balance()
}

func TestB14_TheFirstCheckoutExtendsOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1", "A2")
	// Ten seconds before the end the fan presses pay.
	s.exec(`UPDATE hold SET expires_at = clock_timestamp() + interval '10 seconds' WHERE hold_id = $1`, h.ID)
	s.exec(`UPDATE show_seat SET hold_expires_at = clock_timestamp() + interval '10 seconds' WHERE hold_id = $1`, h.ID)
	left := `SELECT extract(epoch FROM min(hold_expires_at) - clock_timestamp())::bigint FROM show_seat WHERE hold_id = $1`
	c := s.checkout(f, h.ID)
	if n := s.number(left, h.ID); n < 590 || n > 600 {
		t.Errorf("extended to %d s from now", n)
	}
	if n := time.Until(c.ExpiresAt); n < 7*time.Minute || n > 8*time.Minute {
		t.Errorf("the payment page lasts %s", n)
	}
	// A decline and a second attempt extend nothing.
	s.exec(`UPDATE hold SET expires_at = clock_timestamp() + interval '100 seconds' WHERE hold_id = $1`, h.ID)
	s.exec(`UPDATE show_seat SET hold_expires_at = clock_timestamp() + interval '100 seconds' WHERE hold_id = $1`, h.ID)
	s.pay(c, "declined")
	eventually(t, "declined", func() bool { return s.read(f, c.BookingID).Payment.State == payment.PaymentFailed })
	again := s.checkout(f, h.ID)
	if n := s.number(left, h.ID); n > 100 {
		t.Errorf("extended again to %d s", n)
	}
	if n := time.Until(again.ExpiresAt); n > 101*time.Second {
		t.Errorf("the page outlives the hold: %s", n)
	}
	s.pay(again, "paid")
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	s.balance()
}

func TestM1_DeliveredTwiceInParallelAndFoundByPoll(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1", "A2").ID)
	s.exec(`UPDATE payment SET expires_at = clock_timestamp()`) // the poll wants it as well
	s.pay(c, "paid-twice")
	errs := race(4, func(int) error { return s.desk.Reconcile(context.Background()) })
	if n := count(errs, nil); n != 4 {
		t.Errorf("reconcilers: %v", errs)
	}
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	eventually(t, "both deliveries", func() bool { return s.got.Load() >= 2 })
	for sql, want := range map[string]int64{
		`SELECT count(*) FROM booking`: 1, `SELECT count(*) FROM outbox`: 1, `SELECT count(*) FROM ticket`: 2,
		`SELECT count(*) FROM refund`: 0, `SELECT count(*) FROM provider_event`: 1,
	} {
		if n := s.number(sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	s.balance()
}

func TestM2_OneKeyOneProviderSession(t *testing.T) {
	t.Parallel()
	slow := make(chan struct{})
	counted := &counting{}
	s := newShop(t, func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
	})
	ctx, f := context.Background(), s.fan("ana")
	h, other := s.hold(f, "A1"), s.hold(f, "A2")
	counted.before = func() { <-slow }
	type answer struct {
		c   payment.Checkout
		err error
	}
	first := make(chan answer, 1)
	go func() {
		c, _, err := s.desk.Checkout(ctx, f, h.ID, "one", []byte(`{}`))
		first <- answer{c, err}
	}()
	eventually(t, "the first is at the provider", func() bool { return counted.creates.Load() == 1 })
	if _, _, err := s.desk.Checkout(ctx, f, h.ID, "one", nil); !errors.Is(err, payment.ErrInProgress) {
		t.Errorf("twin in flight: %v", err)
	}
	close(slow)
	a := <-first
	must(t, a.err)
	again, created, err := s.desk.Checkout(ctx, f, h.ID, "one", []byte(` { } `))
	must(t, err)
	if created || again != a.c {
		t.Errorf("again: created %v, %+v and %+v", created, a.c, again)
	}
	for what, call := range map[string]func() error{
		"other body": func() error { _, _, err := s.desk.Checkout(ctx, f, h.ID, "one", []byte(`{"x":1}`)); return err },
		"other hold": func() error { _, _, err := s.desk.Checkout(ctx, f, other.ID, "one", nil); return err },
		"ahead":      func() error { return s.desk.KeyConflict(ctx, f, other.ID, "one", nil) },
	} {
		if err := call(); !errors.Is(err, booking.ErrKeyReused) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := counted.creates.Load(); n != 1 {
		t.Errorf("%d provider sessions", n)
	}
	// The same key of another fan is another key; the hold is not theirs.
	if _, _, err := s.desk.Checkout(ctx, s.fan("eve"), h.ID, "one", nil); !errors.Is(err, booking.ErrUnknownHold) {
		t.Errorf("another fan: %v", err)
	}
	// Another key while the page is open: the same page.
	c2, created, err := s.desk.Checkout(ctx, f, h.ID, "two", nil)
	must(t, err)
	if created || c2.PaymentURL != a.c.PaymentURL {
		t.Errorf("another key: created %v, %s", created, c2.PaymentURL)
	}
}

func TestM2_ManyTwinsAtOnce(t *testing.T) {
	t.Parallel()
	counted := &counting{}
	s := newShop(t, func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
	})
	f := s.fan("ana")
	h := s.hold(f, "A1")
	errs := race(20, func(i int) error {
		key := "same"
		if i%2 == 1 {
			key = s.key() // and as many under keys of their own
		}
		_, _, err := s.desk.Checkout(context.Background(), f, h.ID, key, nil)
		return err
	})
	if n := count(errs, nil) + count(errs, payment.ErrInProgress); n != 20 || count(errs, nil) < 10 {
		t.Errorf("answers: %v", errs)
	}
	if n := s.number(`SELECT count(*) FROM payment`); n != 1 {
		t.Errorf("%d payments", n)
	}
	if n := s.number(`SELECT count(DISTINCT response->>'paymentUrl') FROM idempotency WHERE state = 'DONE'`); n != 1 {
		t.Errorf("%d pages", n)
	}
}

func TestM3_DeclinedThenPaidIsOneBooking(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c := s.checkout(f, h.ID)
	s.pay(c, "declined")
	eventually(t, "declined", func() bool { return s.read(f, c.BookingID).Payment.State == payment.PaymentFailed })
	if b := s.read(f, c.BookingID); b.State != payment.BookingPending {
		t.Fatalf("booking %s", b.State)
	}
	again := s.checkout(f, h.ID)
	if again.BookingID != c.BookingID || again.PaymentID == c.PaymentID || again.PaymentURL == c.PaymentURL {
		t.Errorf("second attempt %+v after %+v", again, c)
	}
	s.pay(again, "paid")
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	if n := s.number(`SELECT count(*) FROM booking`); n != 1 {
		t.Errorf("%d bookings", n)
	}
	s.balance()
}

func TestM4_DroppedCallbackIsFoundByTheReconciler(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1").ID)
	s.pay(c, "never")
	if b := s.read(f, c.BookingID); b.State != payment.BookingPending || b.Payment.State != payment.PaymentPending {
		t.Fatalf("booking %s, payment %s", b.State, b.Payment.State)
	}
	must(t, s.desk.Reconcile(context.Background())) // too young to be asked about
	if b := s.read(f, c.BookingID); b.State != payment.BookingPending {
		t.Fatalf("booking %s", b.State)
	}
	s.exec(`UPDATE payment SET created_at = created_at - interval '15 minutes'`)
	must(t, s.desk.Reconcile(context.Background()))
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	if s.got.Load() != 0 {
		t.Error("a callback came")
	}
	s.balance()
}

func TestM5_PaidLateAndResold(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ana, ben := s.fan("ana"), s.fan("ben")
	h := s.hold(ana, "A1", "A2")
	c := s.checkout(ana, h.ID)
	s.pay(c, "paid-late", "delaySeconds", "1") // taken only when all below has happened
	s.expireHold(h.ID, 30*time.Second)
	c2 := s.checkout(ben, s.hold(ben, "A1", "A2").ID)
	s.pay(c2, "paid")
	s.awaitBooking(ben, c2.BookingID, payment.BookingConfirmed)
	// Meanwhile the money is on its way: nobody gives the booking up.
	s.exec(`UPDATE payment SET expires_at = clock_timestamp() WHERE payment_id = $1`, c.PaymentID)
	b := s.awaitBooking(ana, c.BookingID, payment.BookingFailed)
	if b.Reason != payment.ReasonSeatsResold || len(b.Tickets) != 0 {
		t.Errorf("%+v", b)
	}
	s.awaitRefunds()
	if n := s.number(`SELECT count(*) FROM refund WHERE amount = $1`, b.Amount); n != 1 {
		t.Errorf("%d full refunds", n)
	}
	if got := s.text(`SELECT payload->>'reason' FROM outbox WHERE booking_id = $1 AND type = 'BookingFailed'`, b.ID); got != payment.ReasonSeatsResold {
		t.Errorf("the event says %q", got)
	}
	if b := s.read(ana, c.BookingID); b.Payment.State != payment.PaymentRefunded {
		t.Errorf("payment %s", b.Payment.State)
	}
	s.balance()
}

func TestM6_AnOldHoldsMoneyDoesNotBuyTheNewHold(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	a := s.hold(f, "A1", "A2")
	ca := s.checkout(f, a.ID)
	s.expireHold(a.ID, time.Second)
	b := s.hold(f, "A1", "A2")
	if a.ID == b.ID {
		t.Fatal("the same hold")
	}
	cb := s.checkout(f, b.ID)
	s.pay(ca, "paid")
	s.awaitBooking(f, ca.BookingID, payment.BookingFailed)
	if got := s.read(f, cb.BookingID); got.State != payment.BookingPending || got.Payment.State != payment.PaymentPending {
		t.Errorf("B is %s with payment %s", got.State, got.Payment.State)
	}
	if n := s.number(`SELECT count(*) FROM show_seat WHERE hold_id = $1 AND status = 'HELD'`, b.ID); n != 2 {
		t.Errorf("B holds %d seats", n)
	}
	s.pay(cb, "paid")
	s.awaitBooking(f, cb.BookingID, payment.BookingConfirmed)
	s.awaitRefunds()
	s.balance()
}

func TestM10_SellRefundSellRefund(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, name := range []string{"ana", "ben"} {
		f := s.fan(name)
		c := s.checkout(f, s.hold(f, "A1").ID)
		s.pay(c, "paid")
		s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
		b, err := s.desk.Refund(context.Background(), "boss", c.BookingID, payment.RefundOrder{})
		must(t, err)
		if b.State != payment.BookingRefunded || b.RefundedAmount != b.Amount || b.Tickets[0].State != payment.TicketRefunded {
			t.Errorf("%s: %+v", name, b)
		}
	}
	s.awaitRefunds()
	if n := s.number(`SELECT count(*) FROM payment WHERE state = 'REFUNDED'`); n != 2 {
		t.Errorf("%d payments refunded", n)
	}
	if n := s.number(`SELECT count(*) FROM audit_log WHERE actor = 'boss' AND action = 'booking.refund'`); n != 2 {
		t.Errorf("%d lines in the audit log", n)
	}
	if got := s.text(`SELECT string_agg(type || seq, ' ' ORDER BY created_at) FROM outbox`); got != "BookingConfirmed1 BookingRefunded2 BookingConfirmed1 BookingRefunded2" {
		t.Errorf("events %q", got)
	}
	s.balance()
}
