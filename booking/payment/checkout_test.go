package payment_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"usher/booking"
	"usher/booking/payment"
)

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
