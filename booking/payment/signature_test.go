package payment_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"usher/booking/bookingtest"
	"usher/booking/payment"
	"usher/booking/payment/sandbox"
)

// callback makes a signed delivery by hand.
func (s *shop) callback(id string, at time.Time, p sandbox.Payment) (func(string) string, []byte) {
	body, err := json.Marshal(sandbox.Event{Type: "payment." + p.State, CreatedAt: at, Payment: p})
	must(s.t, err)
	return signed(s.secret, id, at, body), body
}

func signed(secret []byte, id string, at time.Time, body []byte) func(string) string {
	h := http.Header{}
	h.Set(sandbox.HeaderID, id)
	h.Set(sandbox.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(sandbox.HeaderSignature, sandbox.Sign(secret, id, at, body))
	return h.Get
}

// paidEvent is what the provider would say of c's payment once paid.
func (s *shop) paidEvent(c payment.Checkout, amount int64, currency string) sandbox.Payment {
	return sandbox.Payment{
		ID: s.text(`SELECT provider_payment_id FROM payment WHERE payment_id = $1`, c.PaymentID), State: "paid",
		Reference: c.PaymentID, Amount: amount, CapturedAmount: amount, Currency: currency,
	}
}

func TestM11_Signatures(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ctx, f, now := context.Background(), s.fan("ana"), time.Now()
	c := s.checkout(f, s.hold(f, "A1").ID)
	p := s.paidEvent(c, bookingtest.Price, bookingtest.Currency)
	_, body := s.callback("evt_1", now, p)
	re, err := json.MarshalIndent(sandbox.Event{Type: "payment.paid", CreatedAt: now, Payment: p}, "", " ")
	must(t, err)
	for name, d := range map[string]struct {
		header func(string) string
		body   []byte
	}{
		"re-encoded":      {signed(s.secret, "evt_1", now, body), re},
		"301 s old":       {signed(s.secret, "evt_1", now.Add(-301*time.Second), body), body},
		"301 s ahead":     {signed(s.secret, "evt_1", now.Add(302*time.Second), body), body},
		"wrong secret":    {signed(secret(), "evt_1", now, body), body},
		"no header":       {http.Header{}.Get, body},
		"of another id":   {func(n string) string { return map[string]string{sandbox.HeaderID: "evt_2"}[n] }, body},
		"truncated":       {signed(s.secret, "evt_1", now, body), body[:len(body)-1]},
		"another's event": {signed(s.secret, "evt_1", now, []byte("{}")), body},
	} {
		if err := s.desk.Callback(ctx, d.header, d.body); !errors.Is(err, payment.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.number(`SELECT count(*) FROM provider_event`); n != 0 {
		t.Errorf("%d events recorded", n)
	}
	must(t, s.desk.Callback(ctx, signed(s.secret, "evt_1", now.Add(-299*time.Second), body), body))
	s.awaitBooking(f, c.BookingID, payment.BookingConfirmed)
}

func TestM11_ARotatedSecret(t *testing.T) {
	t.Parallel()
	older, newer := secret(), secret()
	client, err := sandbox.New(sandbox.Options{BaseURL: "http://x.test", APIKey: "k", CallbackURL: "http://y.test", Secrets: [][]byte{newer, older}})
	must(t, err)
	body, now := []byte(`{"type":"payment.paid","payment":{"state":"paid","id":"p"}}`), time.Now()
	for name, key := range map[string][]byte{"new": newer, "old": older} {
		if _, err := client.ParseCallback(signed(key, "evt", now, body), body, now); err != nil {
			t.Errorf("%s secret: %v", name, err)
		}
	}
}
