package payment_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
)

// 200 fans race for a hall of 180 seats, each to a ticket: hold, checkout, pay,
// callback. Every seat is sold once, 20 fans are told the truth, and both the
// books and the provider's money balance.
func TestAHallOf180SellsOutTo200Fans(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(set *setup) { set.hall = bookingtest.Hall{Rows: 9, PerRow: 20} })
	fans := make([]booking.Session, 200)
	for i := range fans {
		fans[i] = s.fan(s.key())
	}
	errs := race(len(fans), func(i int) error { return s.buyAny(fans[i]) })
	if sold, lost := count(errs, nil), count(errs, booking.ErrSeatsUnavailable); sold != 180 || lost != 20 {
		t.Fatalf("%d bought, %d found nothing: %v", sold, lost, errors.Join(errs...))
	}
	eventually(t, "180 tickets", func() bool { return s.number(`SELECT count(*) FROM ticket WHERE state = 'VALID'`) == 180 })
	if n := s.number(`SELECT count(DISTINCT customer_id) FROM show_seat WHERE status = 'BOOKED'`); n != 180 {
		t.Errorf("%d customers have a seat", n)
	}
	f := s.fan("late")
	_, _, err := s.office.Hold(context.Background(), f, booking.HoldRequest{ShowtimeID: "show", Best: &booking.Best{Count: 1}, IdempotencyKey: s.key()})
	if !errors.Is(err, booking.ErrSoldOut) {
		t.Errorf("a late fan is told %v", err)
	}
	s.balance()
}

// buyAny tries the seats in a random order until one is its own, and pays.
func (s *shop) buyAny(f booking.Session) error {
	ctx := context.Background()
	for _, p := range rand.Perm(len(s.seats)) {
		h, _, err := s.office.Hold(ctx, f, booking.HoldRequest{ShowtimeID: "show", Seats: s.seats[p : p+1]})
		if errors.Is(err, booking.ErrSeatsUnavailable) || errors.Is(err, booking.ErrBusy) {
			continue
		}
		if err != nil {
			return err
		}
		var c payment.Checkout
		if c, _, err = s.desk.Checkout(ctx, f, h.ID, s.key(), nil); err != nil {
			return err
		}
		return postOutcome(ctx, c.PaymentURL)
	}
	return booking.ErrSeatsUnavailable
}

func postOutcome(ctx context.Context, address string) error {
	form := strings.NewReader(url.Values{"outcome": {"paid"}}.Encode())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, form)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		return errors.New(res.Status)
	}
	return nil
}
