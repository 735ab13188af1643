package payment_test

import (
	"context"
	"testing"
	"time"

	"usher/booking/bookingtest"
	"usher/booking/payment"
)

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

func TestM13_NewsInTheWrongOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx := context.Background()
	tell := func(c payment.Checkout, id, state string, amount int64) {
		t.Helper()
		p := s.paidEvent(c, amount, bookingtest.Currency)
		p.State = state
		header, body := s.callback(id, time.Now(), p)
		must(t, s.desk.Callback(ctx, header, body))
	}
	// "Declined" arrives before the success that followed it: while the hold
	// lives the fan gets the seat.
	ana := s.fan("ana")
	a := s.checkout(ana, s.hold(ana, "A1").ID)
	tell(a, "evt_1", "declined", 0)
	tell(a, "evt_2", "paid", bookingtest.Price)
	s.awaitBooking(ana, a.BookingID, payment.BookingConfirmed)
	// "Declined" and "expired" after the success change nothing.
	tell(a, "evt_3", "declined", 0)
	tell(a, "evt_4", "expired", 0)
	s.awaitBooking(ana, a.BookingID, payment.BookingConfirmed)

	// Success days after the booking has failed: the money goes back, and the
	// booking fails once.
	ben := s.fan("ben")
	hold := s.hold(ben, "B1")
	b := s.checkout(ben, hold.ID)
	s.expireHold(hold.ID, 72*time.Hour)
	tell(b, "evt_5", "expired", 0)
	s.awaitBooking(ben, b.BookingID, payment.BookingFailed)
	tell(b, "evt_6", "paid", bookingtest.Price)
	tell(b, "evt_7", "paid", bookingtest.Price)
	if got := s.text(`SELECT state || ' ' || reason FROM payment WHERE payment_id = $1`, b.PaymentID); got != "REFUND_DUE "+payment.ReasonBookingOver {
		t.Errorf("payment %s", got)
	}
	if n := s.number(`SELECT count(*) FROM outbox WHERE booking_id = $1`, b.BookingID); n != 1 {
		t.Errorf("%d events", n)
	}
	if n := s.number(`SELECT count(*) FROM refund WHERE booking_id = $1`, b.BookingID); n != 1 {
		t.Errorf("%d refunds", n)
	}

	// Success after the refund: nothing is left to do.
	_, err := s.desk.Refund(ctx, "boss", a.BookingID, payment.RefundOrder{})
	must(t, err)
	tell(a, "evt_8", "paid", bookingtest.Price)
	if n := s.number(`SELECT sum(amount) FROM refund WHERE booking_id = $1`, a.BookingID); n != bookingtest.Price {
		t.Errorf("%d given back of %d", n, bookingtest.Price)
	}
}
