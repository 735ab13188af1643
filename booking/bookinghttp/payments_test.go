package bookinghttp

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/booking/payment"
	"usher/booking/payment/sandbox"
	"usher/booking/payment/sandboxhttp"
	"usher/internal/basehttp"
)

const (
	officeToken = "office-token"
	viewerToken = "viewer-token" // an operator's who may only look
)

// payingHouse is a booking API with a desk, and the sandbox on a listener of its
// own that calls the API back.
func payingHouse(t *testing.T, hall bookingtest.Hall) *house {
	t.Helper()
	var office *booking.Office
	h := open(t, hall, func(o *Options) { office = o.Office })
	quiet := slog.New(slog.DiscardHandler)
	web := basehttp.NewServer(basehttp.Options{Name: "booking", Log: quiet})
	addr, err := web.Listen(context.Background(), "127.0.0.1:0")
	check(t, err)
	h.url = "http://" + addr.String()

	provider, err := sandboxhttp.New(sandboxhttp.Options{Log: quiet, APIKey: "key", Secret: bytes.Repeat([]byte("w"), 32), DeliverPause: 10 * time.Millisecond})
	check(t, err)
	bank := basehttp.NewServer(basehttp.Options{Name: "sandbox", Log: quiet})
	provider.Register(bank.App)
	bankAddr, err := bank.Listen(context.Background(), "127.0.0.1:0")
	check(t, err)
	client, err := sandbox.New(sandbox.Options{
		BaseURL: "http://" + bankAddr.String(), APIKey: "key", Secrets: [][]byte{bytes.Repeat([]byte("w"), 32)},
		CallbackURL: h.url + "/v1/payments/callback",
	})
	check(t, err)
	desk, err := payment.New(h.pool, payment.Options{
		Log: quiet, Provider: client, ReconcileEvery: -1, SeatsChanged: office.SeatsChanged,
		ReturnURL: func(id string) string { return h.url + "/bookings/" + id },
	})
	check(t, err)
	api, err := New(Options{
		Office: office, Desk: desk, Log: quiet, EdgeURL: "http://edge.test", PublicURL: h.url,
		OperatorAuth: func(token, role string) (string, bool) {
			return "boss", token == officeToken && (role == "boxoffice" || role == "viewer") || token == viewerToken && role == "viewer"
		},
	})
	check(t, err)
	api.Register(web.App)

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, f := range []func() error{
		web.Serve, bank.Serve, func() error { return desk.Run(ctx) }, func() error { return provider.Run(ctx) },
	} {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop, ok := context.WithTimeout(context.Background(), 10*time.Second)
		defer ok()
		_ = web.Shutdown(stop)
		_ = bank.Shutdown(stop)
		cancel()
		wg.Wait()
	})
	return h
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *house) holdFor(token string, seats ...string) string {
	h.t.Helper()
	r := h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": seats}, bearer(token)...)
	r.want(201, "")
	return r.text("holdId")
}

func (h *house) checkout(token, hold, key string) reply {
	h.t.Helper()
	return h.do("POST", "/v1/holds/"+hold+"/checkout", nil, append(bearer(token), "Idempotency-Key", key)...)
}

// payOn chooses on a payment page and returns where it sent us.
func payOn(t *testing.T, page, outcome string) string {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(page, url.Values{"outcome": {outcome}})
	check(t, err)
	_ = res.Body.Close()
	return res.Header.Get("Location")
}

func (h *house) awaitState(token, id, state string) reply {
	h.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		r := h.do("GET", "/v1/bookings/"+id, nil, bearer(token)...)
		if r.text("state") == state {
			return r
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("booking never %s: %d %s", state, r.status, r.body)
		}
	}
}

func TestPayingOverHTTP(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{Rows: 2, PerRow: 10})
	ana, eve := h.session("ana"), h.session("eve")
	hold := h.holdFor(ana, "A1", "A2")

	h.do("POST", "/v1/holds/"+hold+"/checkout", nil, bearer(ana)...).want(400, "idempotency-key-missing")
	h.do("POST", "/v1/holds/"+hold+"/checkout", nil, "Idempotency-Key", "k").want(401, "session-missing")
	h.checkout(eve, hold, "k").want(404, "unknown-hold")
	h.checkout(ana, "0193a000-0000-7000-8000-000000000000", "k").want(404, "unknown-hold")
	h.checkout(ana, "x", "k").want(404, "unknown-hold")
	h.checkout(ana, hold, strings.Repeat("k", 129)).want(400, "idempotency-key-invalid")

	first := h.checkout(ana, hold, "k")
	first.want(201, "")
	again := h.checkout(ana, hold, "k")
	again.want(200, "")
	if !bytes.Equal(first.body, again.body) {
		t.Errorf("%s and %s", first.body, again.body)
	}
	withBody := func(body string) reply {
		return h.do("POST", "/v1/holds/"+hold+"/checkout", body, append(bearer(ana), "Idempotency-Key", "k")...)
	}
	withBody(`{}`).want(200, "")
	withBody(`{"other":1}`).want(422, "idempotency-key-reused")
	h.do("POST", "/v1/holds/"+hold+"/checkout", `{"other":1}`, append(bearer(ana), "Idempotency-Key", "new")...).want(400, "unknown-field")
	id := first.text("bookingId")
	pending := h.do("GET", "/v1/bookings/"+id, nil, bearer(ana)...)
	pending.want(200, "")
	if p, _ := pending.doc()["payment"].(map[string]any); pending.text("state") != "PENDING" || p["status"] != "checking" || p["paymentUrl"] != first.text("paymentUrl") {
		t.Errorf("%s", pending.body)
	}
	if to := payOn(t, first.text("paymentUrl"), "paid"); to != h.url+"/bookings/"+id {
		t.Errorf("sent to %q", to)
	}
	// The session has ended with the sale; its own bookings stay readable.
	b := h.awaitState(ana, id, "CONFIRMED")
	h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": []string{"B1"}}, bearer(ana)...).want(401, "session-ended")
	h.do("GET", "/v1/bookings/"+id, nil, bearer(eve)...).want(404, "unknown-booking")
	h.do("GET", "/v1/bookings/"+id, nil).want(401, "session-missing")

	tickets, _ := b.doc()["tickets"].([]any)
	if len(tickets) != 2 {
		t.Fatalf("tickets: %s", b.body)
	}
	ticket, _ := tickets[0].(map[string]any)
	qrURL, _ := ticket["qrUrl"].(string)
	qr := h.do("GET", qrURL, nil, bearer(ana)...)
	qr.want(200, "")
	if qr.header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(qr.header.Get("Cache-Control"), "private") || !bytes.Contains(qr.body, []byte("<svg")) {
		t.Errorf("qr: %v %.80s", qr.header, qr.body)
	}
	h.do("GET", qrURL, nil, bearer(eve)...).want(404, "unknown-ticket")
}

func TestRefundingOverHTTP(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{Rows: 2, PerRow: 10})
	ana := h.session("ana")
	c := h.checkout(ana, h.holdFor(ana, "A1", "A2"), "k")
	c.want(201, "")
	id := c.text("bookingId")
	office := bearer(officeToken)
	refund := func(id string, body any, headers ...string) reply {
		return h.do("POST", "/v1/bookings/"+id+"/refund", body, headers...)
	}
	refund(id, nil, office...).want(409, "not-refundable") // nothing is paid
	payOn(t, c.text("paymentUrl"), "paid-twice")
	b := h.awaitState(ana, id, "CONFIRMED")
	tickets, _ := b.doc()["tickets"].([]any)
	one, _ := tickets[0].(map[string]any)

	refund(id, nil).want(401, "unauthorized")
	refund(id, nil, bearer("guess")...).want(401, "unauthorized")
	refund(id, nil, bearer(ana)...).want(401, "unauthorized")
	refund(id, nil, bearer(viewerToken)...).want(403, "forbidden")
	refund("0193a000-0000-7000-8000-000000000000", nil, office...).want(404, "unknown-booking")
	refund(id, `{"tickets":[]}`, office...).want(400, "invalid-body")
	refund(id, `{"tickets":["x"]}`, office...).want(404, "unknown-ticket")
	refund(id, `{"amount":1}`, office...).want(400, "unknown-field")
	if n := h.awaitState(ana, id, "CONFIRMED").doc()["refundedAmount"]; n != 0.0 {
		t.Errorf("%v given back by refused calls", n)
	}

	r := refund(id, map[string]any{"tickets": []any{one["ticketId"]}, "reason": "ill"}, office...)
	r.want(200, "")
	if r.text("state") != "CONFIRMED" || r.doc()["refundedAmount"] != float64(bookingtest.Price) || bytes.Contains(r.body, []byte("qrUrl")) {
		t.Errorf("%s", r.body)
	}
	refund(id, map[string]any{"tickets": []any{one["ticketId"]}}, office...).want(409, "not-refundable")
	refund(id, nil, office...).want(200, "")
	h.awaitState(ana, id, "REFUNDED")
	refund(id, nil, office...).want(409, "not-refundable")
	qrURL, _ := one["qrUrl"].(string)
	h.do("GET", qrURL, nil, bearer(ana)...).want(404, "unknown-ticket")
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		p, _ := h.do("GET", "/v1/bookings/"+id, nil, bearer(ana)...).doc()["payment"].(map[string]any)
		if p["status"] == "refunded" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the money is %v", p["status"])
		}
	}
}

func TestM11_CallbacksOverHTTP(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{Rows: 1, PerRow: 4})
	body := `{"type":"payment.paid","payment":{"id":"sp_x","state":"paid","reference":"","capturedAmount":1,"currency":"EUR"}}`
	sign := func(secret string, at time.Time) []string {
		return []string{
			sandbox.HeaderID, "evt_1", sandbox.HeaderTimestamp, strconv.FormatInt(at.Unix(), 10),
			sandbox.HeaderSignature, sandbox.Sign(bytes.Repeat([]byte(secret), 32), "evt_1", at, []byte(body)),
		}
	}
	now := time.Now()
	h.do("POST", "/v1/payments/callback", body).want(400, "signature-invalid")
	h.do("POST", "/v1/payments/callback", body, sign("x", now)...).want(400, "signature-invalid")
	h.do("POST", "/v1/payments/callback", body, sign("w", now.Add(-301*time.Second))...).want(400, "signature-invalid")
	h.do("POST", "/v1/payments/callback", body+" ", sign("w", now)...).want(400, "signature-invalid")
	for range 2 { // a payment nobody knows is taken note of, as often as it is told
		h.do("POST", "/v1/payments/callback", body, sign("w", now)...).want(200, "")
	}
}

func TestALostHoldIsToldWithItsSeats(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{Rows: 1, PerRow: 4})
	ana := h.session("ana")
	hold := h.holdFor(ana, "A1", "A2")
	for _, sql := range []string{
		`UPDATE hold SET expires_at = clock_timestamp()`,
		`UPDATE show_seat SET hold_expires_at = clock_timestamp() WHERE status = 'HELD'`,
	} {
		_, err := h.pool.Exec(context.Background(), sql)
		check(t, err)
	}
	r := h.checkout(ana, hold, "k")
	r.want(409, "hold-expired")
	if seats, _ := r.doc()["seats"].([]any); len(seats) != 2 {
		t.Errorf("%s", r.body)
	}
}
