package payment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
)

// machine drives one seat's fans, the provider and time in any order, and checks
// after every step that no money and no seat is lost.
type machine struct {
	s      *shop
	fans   []booking.Session
	holds  []booking.Hold
	opened []payment.Checkout
	owner  map[string]booking.Session // by booking
}

// refill gives everybody a living session again: what a session's end means is
// not this test's subject.
func (m *machine) refill() {
	m.s.exec(`UPDATE session SET ended_at = NULL, end_reason = NULL, expires_at = clock_timestamp() + interval '15 minutes' WHERE ended_at IS NOT NULL`)
}

func (m *machine) takeSeat(t *rapid.T) {
	m.refill()
	f := rapid.SampledFrom(m.fans).Draw(t, "fan")
	seats := rapid.SampledFrom([][]string{{"A1"}, {"A1", "A2"}, {"A2"}}).Draw(t, "seats")
	h, _, err := m.s.office.Hold(context.Background(), f, booking.HoldRequest{ShowtimeID: "show", Seats: seats})
	switch {
	case err == nil:
		m.holds = append(m.holds, h)
	case errors.Is(err, booking.ErrSeatsUnavailable):
	default:
		t.Fatalf("hold: %v", err)
	}
}

func (m *machine) checkOut(t *rapid.T) {
	if len(m.holds) == 0 {
		t.Skip("no hold")
	}
	h := rapid.SampledFrom(m.holds).Draw(t, "hold")
	for _, f := range m.fans {
		if f.Customer != h.Customer {
			continue
		}
		c, _, err := m.s.desk.Checkout(context.Background(), f, h.ID, m.s.key(), nil)
		switch {
		case err == nil:
			m.opened = append(m.opened, c)
			m.owner[c.BookingID] = f
		case errors.Is(err, booking.ErrHoldExpired), errors.Is(err, booking.ErrHoldNotOpen):
		default:
			t.Fatalf("checkout: %v", err)
		}
	}
}

// settle lets the provider say what became of a payment, at most once per
// payment for money, and delivers it as often as drawn.
func (m *machine) settle(t *rapid.T) {
	if len(m.opened) == 0 {
		t.Skip("no payment")
	}
	c := rapid.SampledFrom(m.opened).Draw(t, "payment")
	outcome := rapid.SampledFrom([]string{"paid", "paid", "declined", "paid-twice", "never"}).Draw(t, "outcome")
	m.s.pay(c, outcome)
	m.quiesce(t)
}

// quiesce waits until the provider has delivered what it had.
func (m *machine) quiesce(t *rapid.T) {
	deadline := time.Now().Add(10 * time.Second)
	for !m.s.provider.Idle() {
		if time.Now().After(deadline) {
			t.Fatal("the provider is still delivering")
		}
		time.Sleep(time.Millisecond)
	}
}

func (m *machine) expireAHold(t *rapid.T) {
	if len(m.holds) == 0 {
		t.Skip("no hold")
	}
	h := rapid.SampledFrom(m.holds).Draw(t, "hold")
	m.s.exec(`UPDATE hold SET expires_at = clock_timestamp() - interval '1 second' WHERE hold_id = $1 AND state IN ('OPEN', 'PAYING')`, h.ID)
	m.s.exec(`UPDATE show_seat SET hold_expires_at = clock_timestamp() - interval '1 second' WHERE hold_id = $1 AND status = 'HELD'`, h.ID)
}

func (m *machine) release(t *rapid.T) {
	if len(m.holds) == 0 {
		t.Skip("no hold")
	}
	h := rapid.SampledFrom(m.holds).Draw(t, "hold")
	f := booking.Session{ID: h.SessionID, Room: "room", Customer: h.Customer}
	err := m.s.office.ReleaseHold(context.Background(), f, h.ID)
	if errors.Is(err, booking.ErrHoldNotOpen) {
		err = m.s.desk.ReleaseHold(context.Background(), f, h.ID)
	}
	if err != nil && !errors.Is(err, booking.ErrHoldNotOpen) {
		t.Fatalf("release: %v", err)
	}
}

func (m *machine) refundOne(t *rapid.T) {
	if len(m.opened) == 0 {
		t.Skip("no booking")
	}
	c := rapid.SampledFrom(m.opened).Draw(t, "booking")
	var o payment.RefundOrder
	b := m.s.read(m.owner[c.BookingID], c.BookingID)
	if len(b.Tickets) > 0 && rapid.Bool().Draw(t, "one ticket") {
		o.Tickets = []string{rapid.SampledFrom(b.Tickets).Draw(t, "ticket").ID}
	}
	if _, err := m.s.desk.Refund(context.Background(), "boss", c.BookingID, o); err != nil && !errors.Is(err, payment.ErrNotRefundable) {
		t.Fatalf("refund: %v", err)
	}
}

func (m *machine) sweep(t *rapid.T) {
	if _, _, err := m.s.office.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) reconcile(t *rapid.T) {
	m.s.exec(`UPDATE payment SET created_at = created_at - interval '15 minutes', checked_at = NULL`)
	if err := m.s.desk.Reconcile(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// end lets everything that is under way finish: then nothing is undecided except
// what can still be paid for.
func (m *machine) end(t *rapid.T) {
	m.s.exec(`UPDATE hold SET expires_at = clock_timestamp() - interval '1 second' WHERE state IN ('OPEN', 'PAYING')`)
	m.s.exec(`UPDATE show_seat SET hold_expires_at = clock_timestamp() - interval '1 second' WHERE status = 'HELD'`)
	m.quiesce(t)
	m.reconcile(t)
	m.reconcile(t)
	if n := m.s.number(`SELECT (SELECT count(*) FROM booking WHERE state = 'PENDING') + (SELECT count(*) FROM payment WHERE state = 'PENDING')`); n != 0 {
		t.Fatalf("%d bookings and payments are left undecided", n)
	}
}

func TestStateMachineLosesNoMoneyAndNoSeat(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		s.exec(`TRUNCATE booking, payment, refund, ticket, hold, outbox, idempotency, provider_event, customer_limit, audit_log, river_job CASCADE`)
		s.exec(`UPDATE show_seat SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL, booking_id = NULL`)
		m := &machine{s: s, owner: map[string]booking.Session{}}
		for _, name := range []string{"ana", "ben"} {
			who := fmt.Sprintf("%s%d", name, runs)
			m.fans = append(m.fans, booking.Session{ID: bookingtest.Visit(s.t, s.pool, "room", who), Room: "room", Customer: who})
		}
		steps := map[string]func(*rapid.T){
			"take": m.takeSeat, "checkout": m.checkOut, "settle": m.settle, "expire": m.expireAHold, "release": m.release,
			"refund": m.refundOne, "sweep": m.sweep, "reconcile": m.reconcile, "": m.check,
		}
		t.Repeat(steps)
		m.end(t)
		m.check(t)
	})
	s.awaitRefunds()
}

// check is what is true after every step.
func (m *machine) check(t *rapid.T) {
	captured := m.s.number(`SELECT COALESCE(sum(captured_amount), 0) FROM payment`)
	booked := m.s.number(`SELECT COALESCE(sum(amount - refunded_amount), 0) FROM booking WHERE state IN ('CONFIRMED', 'REFUNDED')`)
	refunded := m.s.number(`SELECT COALESCE(sum(amount), 0) FROM refund`)
	if captured != booked+refunded {
		t.Fatalf("captured %d, booked %d, refunded %d", captured, booked, refunded)
	}
	for what, sql := range sums {
		if n := m.s.number(sql); n != 0 {
			t.Fatalf("%d %s", n, what)
		}
	}
}
