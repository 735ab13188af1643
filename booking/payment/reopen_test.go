package payment_test

import (
	"context"
	"errors"
	"testing"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
)

// A fan's page keeps one key a hold: it must lead out of a decline, and out of a
// page whose time is over.
func TestM3_TheSameKeyGoesOnWhenItsPageIsDead(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*shop, booking.Session, payment.Checkout){
		"declined": func(s *shop, f booking.Session, c payment.Checkout) {
			s.pay(c, "declined")
			eventually(s.t, "declined", func() bool { return s.read(f, c.BookingID).Payment.State == payment.PaymentFailed })
		},
		"page over": func(s *shop, _ booking.Session, _ payment.Checkout) {
			s.exec(`UPDATE payment SET expires_at = clock_timestamp()`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counted := &counting{}
			s := newShop(t, func(o *setup) {
				o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
			})
			ctx, f := context.Background(), s.fan("ana")
			h := s.hold(f, "A1")
			pay := func() (payment.Checkout, bool) {
				t.Helper()
				c, created, err := s.desk.Checkout(ctx, f, h.ID, "one", nil)
				must(t, err)
				return c, created
			}
			first, _ := pay()
			end(s, f, first)
			second, created := pay()
			if !created || second.BookingID != first.BookingID || second.PaymentID == first.PaymentID || second.PaymentURL == first.PaymentURL {
				t.Fatalf("created %v, %+v after %+v", created, second, first)
			}
			// While that page lives the new answer is the key's.
			again, created := pay()
			if created || again != second || counted.creates.Load() != 2 {
				t.Errorf("created %v, %+v, %d provider sessions", created, again, counted.creates.Load())
			}
			if _, _, err := s.desk.Checkout(ctx, f, h.ID, "one", []byte(`{"x":1}`)); !errors.Is(err, booking.ErrKeyReused) {
				t.Errorf("other body: %v", err)
			}
			s.pay(second, "paid")
			s.awaitBooking(f, first.BookingID, payment.BookingConfirmed)
			// Paid: the key's work is done, its answer stays.
			if done, created := pay(); created || done != second {
				t.Errorf("after paying: created %v, %+v", created, done)
			}
			s.balance()
		})
	}
}

func TestM2_TwinsOfADeadAnswerOpenOnePage(t *testing.T) {
	t.Parallel()
	counted := &counting{}
	s := newShop(t, func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
	})
	ctx, f := context.Background(), s.fan("ana")
	h := s.hold(f, "A1")
	ask := func() error { _, _, err := s.desk.Checkout(ctx, f, h.ID, "one", nil); return err }
	must(t, ask())
	s.exec(`UPDATE payment SET expires_at = clock_timestamp(), state = 'FAILED', reason = 'declined'`)
	errs := race(10, func(int) error { return ask() })
	if n := count(errs, nil) + count(errs, payment.ErrInProgress); n != 10 || count(errs, nil) == 0 {
		t.Errorf("answers: %v", errs)
	}
	if n := s.number(`SELECT count(*) FROM payment`); n != 2 || counted.creates.Load() != 2 {
		t.Errorf("%d payments, %d provider sessions", n, counted.creates.Load())
	}
}

// The hold is over: the dead answer is not shown again.
func TestASpentKeyOfAHoldThatIsOver(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, f := context.Background(), s.fan("ana")
	h := s.hold(f, "A1")
	_, _, err := s.desk.Checkout(ctx, f, h.ID, "one", nil)
	must(t, err)
	s.expireHold(h.ID, 0)
	must(t, s.desk.Reconcile(ctx))
	for range 2 {
		if _, _, err := s.desk.Checkout(ctx, f, h.ID, "one", nil); !errors.Is(err, booking.ErrHoldExpired) {
			t.Errorf("%v", err)
		}
	}
}

// A fan who went into another room in between still pays for the first hold, and
// both visits are over with it.
func TestPayingWithTheSessionOfAnotherRoom(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	bookingtest.Seed(t, s.pool, bookingtest.Hall{Room: "other", Showtime: "elsewhere", Rows: 3, PerRow: 10})
	f := s.fan("ana")
	h := s.hold(f, "A1")
	now := booking.Session{ID: bookingtest.Visit(t, s.pool, "other", "ana"), Room: "other", Customer: "ana"}
	c := s.checkout(now, h.ID)
	s.pay(c, "paid")
	b := s.awaitBooking(now, c.BookingID, payment.BookingConfirmed)
	if b.Showtime.Room != "room" {
		t.Errorf("the booking is of %q", b.Showtime.Room)
	}
	if n := s.number(`SELECT count(*) FROM session WHERE end_reason = 'confirmed'`); n != 2 {
		t.Errorf("%d visits ended", n)
	}
	s.balance()
}

func TestPlacesAreKnownInEveryState(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(o *setup) { o.hall = bookingtest.Hall{Rows: 1, PerRow: 12, Standing: 2} })
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A10", "A9", "GA-0001").ID)
	want := []payment.Place{
		{SeatCode: "GA-0001", Section: "GA", Seat: "1", Standing: true, PriceClass: "Standard", Amount: bookingtest.Price},
		{SeatCode: "A9", Section: "MAIN", Row: "A", Seat: "9", PriceClass: "Standard", Amount: bookingtest.Price},
		{SeatCode: "A10", Section: "MAIN", Row: "A", Seat: "10", PriceClass: "Standard", Amount: bookingtest.Price},
	}
	look := func(b payment.Booking) {
		t.Helper()
		if len(b.Places) != 3 || b.Places[0] != want[0] || b.Places[1] != want[1] || b.Places[2] != want[2] {
			t.Errorf("%s: %+v", b.State, b.Places)
		}
	}
	look(s.read(f, c.BookingID))
	// What was agreed at the hold counts, also after a change of prices.
	s.exec(`UPDATE price_class SET amount = 7`)
	look(s.read(f, c.BookingID))
	s.pay(c, "paid")
	look(s.awaitBooking(f, c.BookingID, payment.BookingConfirmed))
	s.exec(`UPDATE price_class SET amount = 9`)
	b, err := s.desk.Refund(context.Background(), "boss", c.BookingID, payment.RefundOrder{})
	must(t, err)
	look(b)
}
