package payment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"usher/booking"
	"usher/booking/payment"
)

// overdue makes every payment one the reconciler asks about, again and again.
func (s *shop) overdue() {
	s.t.Helper()
	s.exec(`UPDATE payment SET expires_at = clock_timestamp(), checked_at = NULL`)
}

// died begins a checkout whose answer never arrives.
func (s *shop) died(f booking.Session, seat string) (bookingID string) {
	s.t.Helper()
	h := s.hold(f, seat)
	if _, _, err := s.desk.Checkout(context.Background(), f, h.ID, s.key(), nil); !errors.Is(err, payment.ErrProviderDown) {
		s.t.Fatalf("checkout: %v", err)
	}
	return s.text(`SELECT booking_id::text FROM booking WHERE hold_id = $1`, h.ID)
}

// Refused payments have no id at the provider; the second must not trip over the first.
func TestRefusedPaymentsFailWithoutAnId(t *testing.T) {
	t.Parallel()
	a := &answering{create: func(payment.CreateRequest) (payment.Created, error) {
		return payment.Created{}, fmt.Errorf("status 422: %w", payment.ErrRefused)
	}}
	s := newShop(t, answers(a))
	f := s.fan("ana")
	ids := []string{s.died(f, "A1"), s.died(f, "A3")}
	s.overdue()
	must(t, s.desk.Reconcile(context.Background()))
	for _, id := range ids {
		if b := s.read(f, id); b.Payment.State != payment.PaymentFailed || b.Payment.Reason != "refused" {
			t.Errorf("payment %s (%s)", b.Payment.State, b.Payment.Reason)
		}
	}
	if n := s.number(`SELECT count(*) FROM payment WHERE provider_payment_id IS NOT NULL`); n != 0 {
		t.Errorf("%d bound to nothing", n)
	}
}

// A wrong API key is not the payments' fault: they wait until it is put right.
func TestRefusedCredentialsDecideNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, status := range []int{401, 403} {
		if _, err := refusing(t, status).Create(context.Background(), payment.CreateRequest{}); errors.Is(err, payment.ErrRefused) || !errors.Is(err, payment.ErrNotAllowed) {
			t.Errorf("%d: %v", status, err)
		}
	}
	if _, err := refusing(t, 422).Create(context.Background(), payment.CreateRequest{}); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("422: %v", err)
	}
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1").ID)
	locked, err := payment.New(s.pool, payment.Options{Provider: refusing(t, 401), ReturnURL: func(string) string { return "" }, ReconcileEvery: -1})
	must(t, err)
	s.overdue()
	if err := locked.Reconcile(context.Background()); !errors.Is(err, payment.ErrNotAllowed) {
		t.Errorf("the reconciler says nothing: %v", err)
	}
	if b := s.read(f, c.BookingID); b.Payment.State != payment.PaymentPending {
		t.Errorf("payment %s", b.Payment.State)
	}
	s.pay(c, "paid")
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	s.balance()
}

// A provider that denies a payment it opened has lost its books or ours is the
// wrong account: no ground to call the fan's money never paid.
func TestAPaymentTheProviderDeniesIsAnAlarmForADay(t *testing.T) {
	t.Parallel()
	denies := func(string) (payment.Outcome, error) { return payment.Outcome{}, payment.ErrNotKnown }
	a := &answering{fetch: denies, expire: denies}
	reg := prometheus.NewRegistry()
	s := newShop(t, answers(a), func(o *setup) { o.desk.Registerer = reg })
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1").ID)
	for range 2 {
		s.overdue()
		must(t, s.desk.Reconcile(context.Background()))
		if b := s.read(f, c.BookingID); b.State != payment.BookingPending || b.Payment.State != payment.PaymentPending {
			t.Fatalf("booking %s, payment %s", b.State, b.Payment.State)
		}
	}
	if n := metric(t, reg, "usher_payment_missing_at_provider_total"); n != 2 {
		t.Errorf("%v alarms", n)
	}
	s.exec(`UPDATE payment SET created_at = created_at - interval '24 hours'`)
	s.overdue()
	must(t, s.desk.Reconcile(context.Background()))
	if b := s.read(f, c.BookingID); b.Payment.State != payment.PaymentFailed {
		t.Errorf("after a day: payment %s", b.Payment.State)
	}
}

// A page nobody was ever shown, past its time, needs nobody's word.
func TestAPaymentThatWasNeverOpenedIsUnpaid(t *testing.T) {
	t.Parallel()
	a := &answering{create: func(payment.CreateRequest) (payment.Created, error) {
		return payment.Created{}, errors.New("connection refused")
	}}
	s := newShop(t, answers(a))
	f := s.fan("ana")
	id := s.died(f, "A1")
	a.create = func(payment.CreateRequest) (payment.Created, error) {
		return payment.Created{ProviderPaymentID: "sp_new"}, nil
	}
	s.overdue()
	must(t, s.desk.Reconcile(context.Background())) // the sandbox does not know sp_new
	if b := s.read(f, id); b.Payment.State != payment.PaymentFailed {
		t.Errorf("payment %s", b.Payment.State)
	}
}
