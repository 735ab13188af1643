package payment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"usher/booking"
	"usher/booking/payment"
)

// Pressing pay and thinking better of it frees the seats at once.
func TestReleasingAHoldWithAnOpenPage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, f, eve := context.Background(), s.fan("ana"), s.fan("eve")
	h := s.hold(f, "A1", "A2")
	c := s.checkout(f, h.ID)
	if err := s.desk.ReleaseHold(ctx, eve, h.ID); !errors.Is(err, booking.ErrUnknownHold) {
		t.Errorf("another fan: %v", err)
	}
	if err := s.office.ReleaseHold(ctx, f, h.ID); !errors.Is(err, booking.ErrHoldNotOpen) {
		t.Fatalf("the office alone: %v", err)
	}
	must(t, s.desk.ReleaseHold(ctx, f, h.ID))
	b := s.read(f, c.BookingID)
	if b.State != payment.BookingFailed || b.Reason != payment.ReasonHoldReleased || b.Payment.State != payment.PaymentFailed {
		t.Errorf("booking %s (%s), payment %s", b.State, b.Reason, b.Payment.State)
	}
	if got := s.text(`SELECT state FROM hold`); got != booking.HoldReleased {
		t.Errorf("hold %s", got)
	}
	s.pay(c, "paid") // the page is closed: nothing is taken
	must(t, s.desk.ReleaseHold(ctx, f, h.ID))
	s.hold(eve, "A1", "A2")
	if n := s.number(`SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("%d events", n)
	}
	if n := s.number(`SELECT sum(captured_amount) FROM payment`); n != 0 {
		t.Errorf("%d taken", n)
	}
	s.balance()
}

func TestReleasingWhatIsPaidOrBeingPaidIsRefused(t *testing.T) {
	t.Parallel()
	for outcome, then := range map[string]string{"never": payment.BookingConfirmed, "paid-late": payment.BookingPending} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			f := s.fan("ana")
			h := s.hold(f, "A1")
			c := s.checkout(f, h.ID)
			s.pay(c, outcome)
			if err := s.desk.ReleaseHold(context.Background(), f, h.ID); !errors.Is(err, booking.ErrHoldNotOpen) {
				t.Errorf("released: %v", err)
			}
			// What the provider said is not thrown away.
			if b := s.read(f, c.BookingID); b.State != then {
				t.Errorf("booking %s, want %s", b.State, then)
			}
			if got := s.text(`SELECT status FROM show_seat WHERE seat_code = 'A1'`); got == "AVAILABLE" {
				t.Error("the seat is free")
			}
		})
	}
}

func TestReleasingWhileTheProviderCannotSay(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"silent": errors.New("connection refused"), "denies": payment.ErrNotKnown, "locks us out": payment.ErrNotAllowed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &answering{expire: func(string) (payment.Outcome, error) { return payment.Outcome{}, fault }}
			s := newShop(t, answers(a))
			f := s.fan("ana")
			h := s.hold(f, "A1")
			c := s.checkout(f, h.ID)
			if err := s.desk.ReleaseHold(context.Background(), f, h.ID); !errors.Is(err, booking.ErrHoldNotOpen) {
				t.Errorf("released: %v", err)
			}
			if b := s.read(f, c.BookingID); b.State != payment.BookingPending || b.Payment.State != payment.PaymentPending {
				t.Errorf("booking %s, payment %s", b.State, b.Payment.State)
			}
			s.pay(c, "paid")
			s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
			s.balance()
		})
	}
}

// The page was opened and we never heard of it: its key finds it.
func TestReleasingAfterACheckoutThatDied(t *testing.T) {
	t.Parallel()
	var page payment.Created
	counted := &counting{after: func(c payment.Created) error { page = c; return errors.New("crash") }}
	s := newShop(t, func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
	})
	ctx, f := context.Background(), s.fan("ana")
	h := s.hold(f, "A1")
	if _, _, err := s.desk.Checkout(ctx, f, h.ID, "k", nil); err == nil {
		t.Fatal("no crash")
	}
	counted.after = nil
	must(t, s.desk.ReleaseHold(ctx, f, h.ID))
	s.pay(payment.Checkout{PaymentURL: page.URL}, "paid")
	if got := s.text(`SELECT provider_payment_id FROM payment WHERE state = 'FAILED'`); got != page.ProviderPaymentID {
		t.Errorf("bound to %q", got)
	}
	s.hold(s.fan("eve"), "A1")
	s.balance()
}

// Either the fan's money or the fan's wish comes first; never both.
func TestReleasingAndPayingAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	for range 8 {
		s.exec(`UPDATE session SET ended_at = NULL, end_reason = NULL WHERE session_id = $1`, f.ID)
		h := s.hold(f, "A1")
		c := s.checkout(f, h.ID)
		errs := race(3, func(i int) error {
			if i == 0 {
				s.pay(c, "paid")
				return nil
			}
			return s.desk.ReleaseHold(context.Background(), f, h.ID)
		})
		var b payment.Booking
		eventually(t, "decided", func() bool { b = s.read(f, c.BookingID); return b.State != payment.BookingPending })
		released := count(errs[1:], nil)
		if (b.State == payment.BookingConfirmed) == (released > 0) {
			t.Fatalf("booking %s, released: %v", b.State, errs)
		}
		eventually(t, "delivered", s.provider.Idle)
		if b.State == payment.BookingConfirmed {
			_, err := s.desk.Refund(context.Background(), "boss", b.ID, payment.RefundOrder{})
			must(t, err)
		}
		s.awaitRefunds()
		s.balance()
	}
}

// A checkout on its way while the fan lets go: whoever is first, no page stays
// open for seats that are free.
func TestReleasingAndCheckingOutAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	for range 8 {
		h := s.hold(f, "A1")
		s.checkout(f, h.ID)
		s.exec(`UPDATE payment SET expires_at = clock_timestamp() WHERE state = 'PENDING'`) // the next checkout opens a page
		errs := race(4, func(i int) error {
			if i < 2 {
				_, _, err := s.desk.Checkout(context.Background(), f, h.ID, s.key(), nil)
				return err
			}
			return s.desk.ReleaseHold(context.Background(), f, h.ID)
		})
		for _, err := range errs {
			if err != nil && !errors.Is(err, booking.ErrHoldNotOpen) && !errors.Is(err, booking.ErrHoldExpired) {
				t.Fatal(errs)
			}
		}
		free := s.text(`SELECT status FROM show_seat WHERE seat_code = 'A1'`) == "AVAILABLE"
		open := s.number(`SELECT count(*) FROM payment WHERE state = 'PENDING'`)
		if free != (count(errs[2:], nil) > 0) || free == (open > 0) {
			t.Fatalf("free %v with %d open pages: %v", free, open, errs)
		}
		must(t, s.desk.ReleaseHold(context.Background(), f, h.ID))
	}
	s.balance()
}

// Two pages, the older past its time: both are closed.
func TestReleasingClosesEveryPage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c1 := s.checkout(f, h.ID)
	s.exec(`UPDATE payment SET expires_at = clock_timestamp()`)
	c2 := s.checkout(f, h.ID)
	must(t, s.desk.ReleaseHold(context.Background(), f, h.ID))
	s.pay(c1, "paid")
	s.pay(c2, "paid")
	if n := s.number(`SELECT count(*) FROM payment WHERE state = 'FAILED'`); n != 2 {
		t.Errorf("%d attempts ended", n)
	}
	s.balance()
}

func TestReleasingWhatIsOverIsNoError(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c := s.checkout(f, h.ID)
	s.expireHold(h.ID, time.Second)
	must(t, s.desk.ReleaseHold(context.Background(), f, h.ID))
	if b := s.read(f, c.BookingID); b.State != payment.BookingFailed || b.Reason != payment.ReasonHoldExpired {
		t.Errorf("booking %s (%s)", b.State, b.Reason)
	}
	for _, id := range []string{"x", "0193a000-0000-7000-8000-000000000000"} {
		if err := s.desk.ReleaseHold(context.Background(), f, id); !errors.Is(err, booking.ErrUnknownHold) {
			t.Errorf("%s: %v", id, err)
		}
	}
	s.balance()
}
