package payment_test

import (
	"context"
	"errors"
	"testing"

	"usher/booking/bookingtest"
	"usher/booking/payment"
)

func TestEveryStatementPreparesAgainstTheSchema(t *testing.T) {
	t.Parallel()
	bookingtest.Prepares(t, payment.Statements())
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
