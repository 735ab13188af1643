package payment_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
	"usher/booking/payment/sandbox"
)

func TestAnotherAmountOrCurrencyIsGivenBackWhole(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]sandbox.Payment{
		"less":     {CapturedAmount: 1, Currency: bookingtest.Currency},
		"more":     {CapturedAmount: bookingtest.Price + 1, Currency: bookingtest.Currency},
		"currency": {CapturedAmount: bookingtest.Price, Currency: "USD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paidOut := &counting{beforeRefund: func() error { return nil }}
			s := newShop(t, func(o *setup) {
				o.provider = func(p payment.Provider) payment.Provider { paidOut.Provider = p; return paidOut }
			})
			f := s.fan("ana")
			c := s.checkout(f, s.hold(f, "A1").ID)
			header, body := s.callback("evt_1", time.Now(), s.paidEvent(c, wrong.CapturedAmount, wrong.Currency))
			must(t, s.desk.Callback(context.Background(), header, body))
			b := s.read(f, c.BookingID)
			if b.State != payment.BookingFailed || b.Reason != payment.ReasonAmountMismatch {
				t.Errorf("%s: %s", b.State, b.Reason)
			}
			if n := s.number(`SELECT sum(amount) FROM refund`); n != wrong.CapturedAmount {
				t.Errorf("refund of %d", n)
			}
			if got := s.text(`SELECT status FROM show_seat WHERE seat_code = 'A1'`); got != "AVAILABLE" {
				t.Errorf("seat %s", got)
			}
		})
	}
}

func TestAnUnknownPaymentIsRecordedAndAcknowledged(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for i, p := range []sandbox.Payment{
		{ID: "sp_x", Reference: "0193a000-0000-7000-8000-000000000000", State: "paid", CapturedAmount: 5, Currency: "EUR"},
		{ID: "sp_y", Reference: "", State: "paid", CapturedAmount: 5, Currency: "EUR"},
		{ID: "sp_z", Reference: "x", State: "of a later version"},
	} {
		header, body := s.callback("evt_"+strconv.Itoa(i), time.Now(), p)
		must(t, s.desk.Callback(context.Background(), header, body))
	}
	body := []byte("not json \x00 \xff")
	must(t, s.desk.Callback(context.Background(), signed(s.secret, "evt_raw", time.Now(), body), body))
	if n := s.number(`SELECT count(*) FROM provider_event`); n != 4 {
		t.Errorf("%d events recorded", n)
	}
}

// Two pages of one booking, both paid: the second's money goes back.
func TestASecondCaptureIsGivenBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c1 := s.checkout(f, h.ID)
	s.exec(`UPDATE payment SET expires_at = clock_timestamp()`) // our clock says over, the page is still open
	c2 := s.checkout(f, h.ID)
	if c1.PaymentID == c2.PaymentID {
		t.Fatal("one attempt")
	}
	errs := race(2, func(i int) error {
		c := []payment.Checkout{c1, c2}[i]
		header, body := s.callback("evt_"+c.PaymentID, time.Now(), s.paidEvent(c, bookingtest.Price, bookingtest.Currency))
		return s.desk.Callback(context.Background(), header, body)
	})
	if count(errs, nil) != 2 {
		t.Fatal(errs)
	}
	if got := s.text(`SELECT string_agg(state, ' ' ORDER BY state) FROM payment`); got != "CAPTURED REFUND_DUE" {
		t.Errorf("payments %s", got)
	}
	s.awaitBooking(f, c1.BookingID, payment.BookingConfirmed)
}

func TestAbandonedBookingsFail(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1")
	c := s.checkout(f, h.ID)
	s.expireHold(h.ID, time.Second)
	must(t, s.desk.Reconcile(context.Background()))
	b := s.read(f, c.BookingID)
	if b.State != payment.BookingFailed || b.Payment.State != payment.PaymentFailed || b.Reason != payment.ReasonHoldExpired {
		t.Errorf("booking %s (%s), payment %s", b.State, b.Reason, b.Payment.State)
	}
	// Its page can no longer be paid on.
	s.pay(c, "paid")
	if o, err := s.client.Fetch(context.Background(), s.text(`SELECT provider_payment_id FROM payment`)); err != nil || o.Status != payment.StatusExpired {
		t.Errorf("%+v, %v", o, err)
	}
	// Nor can its hold.
	_, _, err := s.desk.Checkout(context.Background(), f, h.ID, "again", nil)
	if !errors.Is(err, booking.ErrHoldExpired) {
		t.Errorf("checkout: %v", err)
	}
	s.balance()
}

func TestACheckoutNamesTheSeatsThatAreLost(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	f := s.fan("ana")
	h := s.hold(f, "A1", "A2")
	s.exec(`UPDATE show_seat SET status = 'BOOKED', hold_id = gen_random_uuid(), hold_expires_at = NULL, booking_id = gen_random_uuid() WHERE seat_code = 'A2'`)
	_, _, err := s.desk.Checkout(context.Background(), f, h.ID, "k", nil)
	var lost *payment.HoldLostError
	if !errors.As(err, &lost) || !errors.Is(err, booking.ErrHoldExpired) || len(lost.Seats) != 1 || lost.Seats[0] != "A2" {
		t.Errorf("%v", err)
	}
	if n := s.number(`SELECT (SELECT count(*) FROM booking) + (SELECT count(*) FROM payment) + (SELECT count(*) FROM idempotency)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// The server's default isolation level changes nothing.
func TestRepeatableReadAsTheDefaultChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	must(t, s.pool.QueryRow(context.Background(), `SELECT 1`).Scan(new(int)))
	s.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`)
	s.pool.Reset()
	f := s.fan("ana")
	c := s.checkout(f, s.hold(f, "A1").ID)
	s.pay(c, "paid-twice")
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
	must(t, booking.InTx(context.Background(), s.pool, func(tx pgx.Tx) error { return nil }))
	s.balance()
}
