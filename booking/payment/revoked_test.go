package payment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"usher/booking"
	"usher/booking/audit"
	"usher/booking/payment"
)

func (s *shop) revoke(customers ...string) {
	s.t.Helper()
	_, err := s.office.Revoke(context.Background(), "olga", booking.Revocation{Room: "room", Customers: customers, Reason: "bot"})
	must(s.t, err)
}

func (s *shop) audit() {
	s.t.Helper()
	found, err := audit.Check(context.Background(), s.pool)
	must(s.t, err)
	if len(found) > 0 {
		s.t.Error(audit.Format(found))
	}
}

func TestQ12_MoneyOfARevokedFanGoesBackOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ana, ben := s.fan("ana"), s.fan("ben")
	c := s.checkout(ana, s.hold(ana, "A1", "A2").ID)
	late := s.checkout(ben, s.hold(ben, "B1").ID)
	s.revoke("ana", "ben")
	eventually(t, "the seats are free while the pages are open", func() bool {
		return s.number(`SELECT count(*) FROM show_seat WHERE status <> 'AVAILABLE'`) == 0
	})
	s.pay(c, "paid-twice") // the callback comes twice
	if b := s.awaitBooking(ana, c.BookingID, payment.BookingFailed); b.Reason != payment.ReasonRevoked {
		t.Errorf("reason %q", b.Reason)
	}
	s.pay(late, "never") // paid, and no callback: the reconciler finds it
	s.exec(`UPDATE payment SET created_at = created_at - interval '15 minutes'`)
	must(t, s.desk.Reconcile(context.Background()))
	s.awaitBooking(ben, late.BookingID, payment.BookingFailed)
	s.awaitRefunds()
	if n := s.number(`SELECT count(*) FROM refund WHERE state = 'DONE'`); n != 2 {
		t.Errorf("%d refunds of two payments", n)
	}
	s.balance()
	s.audit()
}

// A callback that waits for the seats' locks while the order is given finds it: the
// order cannot overtake it, and neither can it slip through.
func TestQ12_ConfirmsRaceTheOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const fans = 10
	var names []string
	var checkouts []payment.Checkout
	visits := make([]booking.Session, fans)
	for i := range visits {
		names = append(names, fmt.Sprintf("bot-%d", i))
		visits[i] = s.fan(names[i])
		checkouts = append(checkouts, s.checkout(visits[i], s.hold(visits[i], fmt.Sprintf("A%d", i+1)).ID))
	}
	gate, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-gate
		s.revoke(names...)
	}()
	close(gate)
	for _, c := range checkouts {
		s.pay(c, "paid")
	}
	<-done
	for i, c := range checkouts {
		eventually(t, "decided", func() bool { return s.read(visits[i], c.BookingID).State != payment.BookingPending })
	}
	s.awaitRefunds()
	if n := s.number(`SELECT count(*) FROM booking b, revocation x WHERE x.subject = b.customer_id
		AND b.confirmed_at > x.created_at + interval '1 second'`); n > 0 {
		t.Errorf("%d confirmed after the order", n)
	}
	s.balance()
	s.audit()
}

// A callback that comes while the order is being committed waits for it.
func TestQ12_AConfirmWaitsForTheOrderBeforeIt(t *testing.T) {
	t.Parallel()
	s, ctx := newShop(t), context.Background()
	ana := s.fan("ana")
	c := s.checkout(ana, s.hold(ana, "A1").ID)
	order, err := s.pool.Begin(ctx)
	must(t, err)
	defer func() { _ = order.Rollback(ctx) }()
	_, err = order.Exec(ctx, booking.SQLFenceOut)
	must(t, err)
	_, err = order.Exec(ctx, `INSERT INTO revocation (revocation_id, kind, subject, actor) VALUES (gen_random_uuid(), 'customer', 'ana', 'olga')`)
	must(t, err)
	s.pay(c, "paid")
	eventually(t, "the confirm waits, or has come through", func() bool {
		return s.read(ana, c.BookingID).State == payment.BookingConfirmed || s.number(`SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`) > 0
	})
	must(t, order.Commit(ctx))
	if b := s.awaitBooking(ana, c.BookingID, payment.BookingFailed); b.Reason != payment.ReasonRevoked {
		t.Errorf("reason %q", b.Reason)
	}
	s.awaitRefunds()
	s.balance()
}

func TestQ12_CheckoutIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ana := s.fan("ana")
	h := s.hold(ana, "A1")
	s.exec(`INSERT INTO revocation (revocation_id, kind, subject, actor) VALUES (gen_random_uuid(), 'customer', 'ana', 'olga')`) // no process has heard of it
	_, _, err := s.desk.Checkout(context.Background(), ana, h.ID, "k", nil)
	if !errors.Is(err, booking.ErrRevoked) {
		t.Errorf("checkout: %v", err)
	}
	if n := s.number(`SELECT count(*) FROM payment`); n != 0 {
		t.Errorf("%d payments", n)
	}
	// Nor is a payment that comes for it taken, though nobody has released the hold yet.
	cy := s.fan("cy")
	paid := s.checkout(cy, s.hold(cy, "C1").ID)
	s.exec(`INSERT INTO revocation (revocation_id, kind, subject, actor) VALUES (gen_random_uuid(), 'customer', 'cy', 'olga')`)
	s.pay(paid, "paid")
	if b := s.awaitBooking(cy, paid.BookingID, payment.BookingFailed); b.Reason != payment.ReasonRevoked {
		t.Errorf("reason %q", b.Reason)
	}
	s.awaitRefunds()
	s.balance()
	// What was bought before stays bought.
	ben := s.fan("ben")
	c := s.checkout(ben, s.hold(ben, "B1").ID)
	s.pay(c, "paid")
	s.awaitBooking(ben, c.BookingID, payment.BookingConfirmed)
	s.revoke("ben")
	time.Sleep(20 * time.Millisecond)
	if b := s.read(ben, c.BookingID); b.State != payment.BookingConfirmed {
		t.Errorf("booking %s", b.State)
	}
}
