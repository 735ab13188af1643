package payment_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"usher/booking/bookingtest"
	"usher/booking/payment"
)

// sold is a confirmed booking of the given seats.
func (s *shop) sold(name string, seats ...string) payment.Booking {
	s.t.Helper()
	f := s.fan(name)
	c := s.checkout(f, s.hold(f, seats...).ID)
	s.pay(c, "paid")
	return s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
}

func TestRefundsInParallelNeverExceedWhatWasPaid(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b := s.sold("ana", "A1", "A2", "A3", "A4")
	// Whole, each ticket, and pairs, all at once.
	orders := []payment.RefundOrder{{}, {}}
	for i := range b.Tickets {
		orders = append(orders, payment.RefundOrder{Tickets: []string{b.Tickets[i].ID}},
			payment.RefundOrder{Tickets: []string{b.Tickets[i].ID, b.Tickets[(i+1)%4].ID}})
	}
	errs := race(len(orders), func(i int) error {
		_, err := s.desk.Refund(context.Background(), "boss", b.ID, orders[i])
		return err
	})
	if count(errs, nil)+count(errs, payment.ErrNotRefundable) != len(orders) {
		t.Errorf("answers: %v", errs)
	}
	if n := s.number(`SELECT sum(amount) FROM refund`); n > b.Amount {
		t.Errorf("%d of %d given back", n, b.Amount)
	}
	// What is left can still be given back, and then nothing.
	_, err := s.desk.Refund(context.Background(), "boss", b.ID, payment.RefundOrder{})
	if err != nil && !errors.Is(err, payment.ErrNotRefundable) {
		t.Error(err)
	}
	if _, err := s.desk.Refund(context.Background(), "boss", b.ID, payment.RefundOrder{}); !errors.Is(err, payment.ErrNotRefundable) {
		t.Errorf("once more: %v", err)
	}
	s.awaitRefunds()
	if n := s.number(`SELECT sum(amount) FROM refund WHERE state = 'DONE'`); n != b.Amount {
		t.Errorf("%d of %d given back", n, b.Amount)
	}
	if got := s.text(`SELECT state FROM payment`); got != payment.PaymentRefunded {
		t.Errorf("payment %s", got)
	}
	s.balance()
}

func TestB13_OneTicketOfABooking(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b := s.sold("ana", "A1", "A2", "A3")
	after, err := s.desk.Refund(context.Background(), "boss", b.ID, payment.RefundOrder{Tickets: []string{b.Tickets[1].ID}})
	must(t, err)
	if after.State != payment.BookingConfirmed || after.RefundedAmount != bookingtest.Price {
		t.Errorf("%s, %d back", after.State, after.RefundedAmount)
	}
	if got := s.text(`SELECT string_agg(status, ' ' ORDER BY seat_code) FROM show_seat WHERE seat_code IN ('A1', 'A2', 'A3')`); got != "BOOKED AVAILABLE BOOKED" {
		t.Errorf("seats %s", got)
	}
	if _, _, err := s.desk.ValidTicket(context.Background(), s.fan("ana"), b.ID, b.Tickets[1].ID); !errors.Is(err, payment.ErrUnknownTicket) {
		t.Errorf("the refunded ticket's code: %v", err)
	}
	s.sold("ben", "A2")
	s.awaitRefunds()
	s.balance()
}

func TestWhatCannotBeRefunded(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx := context.Background()
	b := s.sold("ana", "A1")
	other := s.sold("ben", "A2")
	f := s.fan("cem")
	pending := s.checkout(f, s.hold(f, "A3").ID)
	for name, d := range map[string]struct {
		booking string
		order   payment.RefundOrder
		want    error
	}{
		"no booking":        {"0193a000-0000-7000-8000-000000000000", payment.RefundOrder{}, payment.ErrUnknownBooking},
		"not an id":         {"x", payment.RefundOrder{}, payment.ErrUnknownBooking},
		"pending":           {pending.BookingID, payment.RefundOrder{}, payment.ErrNotRefundable},
		"another's ticket":  {b.ID, payment.RefundOrder{Tickets: []string{other.Tickets[0].ID}}, payment.ErrUnknownTicket},
		"not a ticket's id": {b.ID, payment.RefundOrder{Tickets: []string{"x"}}, payment.ErrUnknownTicket},
		"own and another's": {b.ID, payment.RefundOrder{Tickets: []string{b.Tickets[0].ID, other.Tickets[0].ID}}, payment.ErrUnknownTicket},
	} {
		if _, err := s.desk.Refund(ctx, "boss", d.booking, d.order); !errors.Is(err, d.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The same ticket named twice is one ticket.
	after, err := s.desk.Refund(ctx, "boss", b.ID, payment.RefundOrder{Tickets: []string{b.Tickets[0].ID, b.Tickets[0].ID}})
	must(t, err)
	if after.RefundedAmount != b.Amount || after.State != payment.BookingRefunded {
		t.Errorf("%+v", after)
	}
	s.awaitRefunds()
	s.balance()
}

// The provider is asked again and again and gives the money back once.
func TestARefundIsTriedAgainAndDoneOnce(t *testing.T) {
	t.Parallel()
	var fails atomic.Int64
	counted := &counting{beforeRefund: func() error {
		if fails.Add(1) == 1 {
			return errors.New("down")
		}
		return nil
	}}
	s := newShop(t, func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { counted.Provider = p; return counted }
	})
	b := s.sold("ana", "A1")
	_, err := s.desk.Refund(context.Background(), "boss", b.ID, payment.RefundOrder{})
	must(t, err)
	s.awaitRefunds()
	if counted.refunds.Load() < 2 {
		t.Error("it never failed")
	}
	// A job that runs once more, as after a crash, changes nothing.
	s.exec(`UPDATE refund SET state = 'DUE', done_at = NULL, provider_refund_id = NULL, created_at = created_at - interval '1 hour'`)
	s.exec(`UPDATE payment SET state = 'REFUND_DUE'`)
	eventually(t, "ordered again and done", func() bool {
		must(t, s.desk.Reconcile(context.Background())) // the old job may only just be ending
		return s.number(`SELECT count(*) FROM refund WHERE state = 'DUE'`) == 0
	})
	s.balance()
}

func TestShareAddsUpExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, 1_000_000), 1, 12).Draw(t, "prices")
		total := rapid.Int64Range(0, 10_000_000).Draw(t, "total")
		var sum, want int64
		for _, w := range weights {
			want += w
		}
		if rapid.Bool().Draw(t, "as priced") {
			total = want
		}
		parts := payment.Share(total, weights)
		for i, p := range parts {
			sum += p
			if p < 0 || (total == want && p != weights[i]) {
				t.Fatalf("share %v of %d by %v", parts, total, weights)
			}
		}
		if sum != total {
			t.Fatalf("%v adds up to %d, not %d", parts, sum, total)
		}
	})
}
