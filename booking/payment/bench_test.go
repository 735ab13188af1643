package payment_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"usher/booking/bookingtest"
	"usher/booking/payment"
)

// BenchmarkConfirm measures one callback of a paid single-seat booking: signature,
// one transaction with seat, hold, booking, payment, ticket, event and session.
func BenchmarkConfirm(b *testing.B) {
	s := newShop(b, func(o *setup) { o.hall = bookingtest.Hall{Rows: 50, PerRow: max(1, (b.N+49)/50), MaxPerHold: 8} })
	type delivery struct {
		header func(string) string
		body   []byte
	}
	var due []delivery
	for i := range b.N {
		f := s.fan(fmt.Sprintf("fan%d", i))
		c := s.checkout(f, s.hold(f, s.seats[i]).ID)
		header, body := s.callback("evt_"+c.PaymentID, time.Now(), s.paidEvent(c, bookingtest.Price, bookingtest.Currency))
		due = append(due, delivery{header, body})
	}
	b.ResetTimer()
	errs := make(chan error, 8)
	work := make(chan delivery)
	for range 8 {
		go func() {
			for d := range work {
				if err := s.desk.Callback(context.Background(), d.header, d.body); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for _, d := range due {
		work <- d
	}
	close(work)
	for range 8 {
		must(b, <-errs)
	}
	b.StopTimer()
	if n := s.number(`SELECT count(*) FROM booking WHERE state = $1`, payment.BookingConfirmed); n != int64(b.N) {
		b.Fatalf("%d of %d confirmed", n, b.N)
	}
}
