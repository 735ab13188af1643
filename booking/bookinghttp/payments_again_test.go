package bookinghttp

import (
	"context"
	"testing"
	"time"

	"usher/booking/bookingtest"
	"usher/booking/payment"
)

// Pressing pay once does not lock the fan in.
func TestAHoldWithAnOpenPageIsReleasedOverHTTP(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{Rows: 1, PerRow: 4})
	ana, eve := h.session("ana"), h.session("eve")
	hold := h.holdFor(ana, "A1", "A2")
	c := h.checkout(ana, hold, "k")
	c.want(201, "")
	b := h.do("GET", "/v1/bookings/"+c.text("bookingId"), nil, bearer(ana)...)
	places, _ := b.doc()["places"].([]any)
	if len(places) != 2 {
		t.Fatalf("%s", b.body)
	}
	if p, _ := places[1].(map[string]any); p["seat"] != "A2" || p["section"] != "MAIN" || p["row"] != "A" || p["number"] != "2" ||
		p["standing"] != false || p["priceClass"] != "Standard" || p["amount"] != float64(bookingtest.Price) {
		t.Errorf("%v", p)
	}
	h.do("DELETE", "/v1/holds/"+hold, nil, bearer(eve)...).want(404, "unknown-hold")
	h.do("DELETE", "/v1/holds/"+hold, nil, bearer(ana)...).want(204, "")
	h.do("DELETE", "/v1/holds/"+hold, nil, bearer(ana)...).want(204, "")
	h.holdFor(eve, "A1", "A2")
	failed := h.awaitState(ana, c.text("bookingId"), "FAILED")
	if failed.text("reason") != payment.ReasonHoldReleased {
		t.Errorf("%s", failed.body)
	}
	h.checkout(ana, hold, "k").want(409, "hold-expired")
}

func TestAPaidHoldIsNotReleasedOverHTTP(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{Rows: 1, PerRow: 4})
	ana := h.session("ana")
	hold := h.holdFor(ana, "A1")
	c := h.checkout(ana, hold, "k")
	payOn(t, c.text("paymentUrl"), "never") // the money is taken and nobody has told us
	h.do("DELETE", "/v1/holds/"+hold, nil, bearer(ana)...).want(409, "hold-not-open")
	h.awaitState(ana, c.text("bookingId"), "CONFIRMED")
}

// The pages keep one key a hold, and one page's cookie is another room's by then.
func TestPayingAgainAndFromAnotherRoomOverHTTP(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{Rows: 1, PerRow: 4})
	ana := h.session("ana")
	hold := h.holdFor(ana, "A1")
	first := h.checkout(ana, hold, "k")
	payOn(t, first.text("paymentUrl"), "declined")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		b := h.do("GET", "/v1/bookings/"+first.text("bookingId"), nil, bearer(ana)...)
		if p, _ := b.doc()["payment"].(map[string]any); p["status"] == "failed" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("never declined")
		}
	}
	_, err := h.pool.Exec(context.Background(), `INSERT INTO room (room_id, title, mode, rate_per_minute, cap) VALUES ('other', '', 'fifo', 1, 1)`)
	check(t, err)
	_, err = h.pool.Exec(context.Background(), `UPDATE session SET room_id = 'other'`)
	check(t, err)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if h.do("GET", "/v1/session", nil, bearer(ana)...).text("room") == "other" {
			break // a session is remembered for a second
		}
		if time.Now().After(deadline) {
			t.Fatal("never in the other room")
		}
	}
	second := h.checkout(ana, hold, "k")
	second.want(201, "")
	if second.text("paymentUrl") == first.text("paymentUrl") || second.text("bookingId") != first.text("bookingId") {
		t.Errorf("%s after %s", second.body, first.body)
	}
	h.do("GET", "/v1/holds/"+hold, nil, bearer(ana)...).want(200, "")
	payOn(t, second.text("paymentUrl"), "paid")
	h.awaitState(ana, first.text("bookingId"), "CONFIRMED")
}
