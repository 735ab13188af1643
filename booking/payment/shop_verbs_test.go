package payment_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"usher/booking"
	"usher/booking/audit"
	"usher/booking/bookingtest"
	"usher/booking/payment"
)

func (s *shop) fan(name string) booking.Session {
	s.t.Helper()
	return booking.Session{ID: bookingtest.Visit(s.t, s.pool, "room", name), Room: "room", Customer: name}
}

// hold takes seats or fails the test.
func (s *shop) hold(f booking.Session, seats ...string) booking.Hold {
	s.t.Helper()
	h, _, err := s.office.Hold(context.Background(), f, booking.HoldRequest{ShowtimeID: "show", Seats: seats})
	must(s.t, err)
	return h
}

// checkout opens a payment under a key of its own.
func (s *shop) checkout(f booking.Session, holdID string) payment.Checkout {
	s.t.Helper()
	c, _, err := s.desk.Checkout(context.Background(), f, holdID, s.key(), nil)
	must(s.t, err)
	return c
}

func (s *shop) key() string { return fmt.Sprintf("key-%d", s.keys.Add(1)) }

// pay chooses an outcome on the payment page and returns where the page sent us.
func (s *shop) pay(c payment.Checkout, outcome string, more ...string) string {
	s.t.Helper()
	form := url.Values{"outcome": {outcome}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	web := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := web.PostForm(c.PaymentURL, form)
	must(s.t, err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("pay %s: status %d", outcome, res.StatusCode)
	}
	return res.Header.Get("Location")
}

func (s *shop) read(f booking.Session, id string) payment.Booking {
	s.t.Helper()
	b, err := s.desk.Booking(context.Background(), f, id)
	must(s.t, err)
	return b
}

// awaitBooking waits until the booking has state.
func (s *shop) awaitBooking(f booking.Session, id, state string) payment.Booking {
	s.t.Helper()
	var b payment.Booking
	eventually(s.t, "booking "+state, func() bool {
		b = s.read(f, id)
		return b.State == state
	})
	return b
}

// awaitRefunds waits until nothing is owed to anybody.
func (s *shop) awaitRefunds() {
	s.t.Helper()
	eventually(s.t, "refunds paid out", func() bool { return s.number(`SELECT count(*) FROM refund WHERE state = 'DUE'`) == 0 })
}

// expireHold moves a hold's end into the past, by the database's clock.
func (s *shop) expireHold(id string, by time.Duration) {
	s.t.Helper()
	s.exec(`UPDATE hold SET expires_at = clock_timestamp() - make_interval(secs => $2) WHERE hold_id = $1`, id, by.Seconds())
	s.exec(`UPDATE show_seat SET hold_expires_at = clock_timestamp() - make_interval(secs => $2) WHERE hold_id = $1 AND status = 'HELD'`, id, by.Seconds())
}

func (s *shop) exec(sql string, args ...any) {
	s.t.Helper()
	_, err := s.pool.Exec(context.Background(), sql, args...)
	must(s.t, err)
}

func (s *shop) number(sql string, args ...any) (n int64) {
	s.t.Helper()
	must(s.t, s.pool.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

func (s *shop) text(sql string, args ...any) (v string) {
	s.t.Helper()
	must(s.t, s.pool.QueryRow(context.Background(), sql, args...).Scan(&v))
	return v
}

// sums are what must be zero at any instant.
var sums = map[string]string{
	"tickets without a sold seat": `SELECT count(*) FROM ticket k LEFT JOIN show_seat s USING (showtime_id, seat_code)
			WHERE k.state = 'VALID' AND (s.status <> 'BOOKED' OR s.booking_id <> k.booking_id)`,
	"sold seats without a ticket": `SELECT count(*) FROM show_seat s WHERE s.status = 'BOOKED' AND NOT EXISTS
			(SELECT FROM ticket k WHERE k.showtime_id = s.showtime_id AND k.seat_code = s.seat_code AND k.booking_id = s.booking_id AND k.state = 'VALID')`,
	"confirmed bookings without one captured payment": `SELECT count(*) FROM booking b WHERE b.state = 'CONFIRMED' AND 1 <>
			(SELECT count(*) FROM payment p WHERE p.booking_id = b.booking_id AND p.state = 'CAPTURED')`,
	"bookings decided without their event": `SELECT count(*) FROM booking b WHERE b.state <> 'PENDING' AND NOT EXISTS
			(SELECT FROM outbox o WHERE o.booking_id = b.booking_id)`,
	"payments given back and not closed": `SELECT count(*) FROM payment p WHERE p.state = 'REFUND_DUE' AND NOT EXISTS
			(SELECT FROM refund r WHERE r.payment_id = p.payment_id AND r.state = 'DUE')`,
}

// balance checks that no money is lost, in our books and against the provider's.
func (s *shop) balance() {
	s.t.Helper()
	captured := s.number(`SELECT COALESCE(sum(captured_amount), 0) FROM payment`)
	booked := s.number(`SELECT COALESCE(sum(amount - refunded_amount), 0) FROM booking WHERE state IN ('CONFIRMED', 'REFUNDED')`)
	refunded := s.number(`SELECT COALESCE(sum(amount), 0) FROM refund`)
	paidOut := s.number(`SELECT COALESCE(sum(amount), 0) FROM refund WHERE state = 'DONE'`)
	if captured != booked+refunded {
		s.t.Errorf("captured %d, booked %d, refunded %d", captured, booked, refunded)
	}
	theirs := s.provider.Totals()[bookingtest.Currency]
	if theirs.Captured != captured || theirs.Refunded != paidOut {
		s.t.Errorf("the provider took %d and gave back %d; we say %d and %d", theirs.Captured, theirs.Refunded, captured, paidOut)
	}
	for what, sql := range sums {
		if n := s.number(sql); n != 0 {
			s.t.Errorf("%d %s", n, what)
		}
	}
	breaches, err := audit.Check(context.Background(), s.pool)
	must(s.t, err)
	if len(breaches) > 0 {
		s.t.Error(audit.Format(breaches))
	}
}
