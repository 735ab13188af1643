package bookinghttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/admission/pass"
	"usher/booking"
	"usher/booking/bookingtest"
	"usher/internal/basehttp"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

// house is a booking API on a listener, with a seeded hall behind it.
type house struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool
	ring pass.Ring
}

func open(t *testing.T, hall bookingtest.Hall, change ...func(*Options)) *house {
	t.Helper()
	h := &house{t: t, pool: bookingtest.Pool(t)}
	bookingtest.Seed(t, h.pool, hall)
	ring, err := pass.NewRing(time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	h.ring = ring
	h.serve(change...)
	return h
}

// another is a second process over the same database, by a pool of its own.
func (h *house) another() *house {
	h.t.Helper()
	n := &house{t: h.t, pool: bookingtest.PoolOn(h.t, h.pool.Config().ConnString()), ring: h.ring}
	n.serve()
	return n
}

// serve starts an office and its API until the test ends.
func (h *house) serve(change ...func(*Options)) {
	t, ring := h.t, h.ring
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	office, err := booking.New(h.pool, booking.Options{
		Log: quiet, Verifier: pass.NewVerifier(pass.RingSource(func() pass.Ring { return ring }, time.Now), nil),
		SessionSecret: bytes.Repeat([]byte("s"), 32), SweepEvery: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := basehttp.NewServer(basehttp.Options{Name: "booking", Log: quiet})
	addr, err := server.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.url = "http://" + addr.String()
	o := Options{Office: office, Log: quiet, EdgeURL: "http://edge.test", PublicURL: h.url}
	for _, c := range change {
		c(&o)
	}
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	api.Register(server.App)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- office.Run(ctx) }()
	go func() { done <- server.Serve() }()
	t.Cleanup(func() {
		stop, ok := context.WithTimeout(context.Background(), 10*time.Second)
		defer ok()
		if err := server.Shutdown(stop); err != nil {
			t.Error(err)
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

func (h *house) pass(jti, customer, bindingHash string) string {
	h.t.Helper()
	key, err := h.ring.Signer(time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	token, err := pass.Mint(key, pass.Claims{
		ID: jti, Room: "room", PlaceID: "place-" + jti, Customer: customer, BindingHash: bindingHash, Run: 1,
		IssuedAt: now, ExpiresAt: now.Add(pass.Life),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

// session exchanges a fresh pass of customer and returns the session's token.
func (h *house) session(customer string) string {
	h.t.Helper()
	r := h.do("POST", "/v1/sessions", map[string]any{"pass": h.pass("jti-"+customer, customer, "")})
	if r.status != 201 {
		h.t.Fatalf("session: %d %s", r.status, r.body)
	}
	return r.text("sessionToken")
}

type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

func (r reply) doc() (m map[string]any) {
	_ = json.Unmarshal(r.body, &m)
	return m
}

func (r reply) text(field string) string {
	s, _ := r.doc()[field].(string)
	return s
}

// problem is the slug of a problem document, "" when the reply is none.
func (r reply) problem() string {
	if !strings.HasPrefix(r.header.Get("Content-Type"), "application/problem+json") {
		return ""
	}
	return strings.TrimPrefix(r.text("type"), basehttp.TypeBase)
}

func (r reply) want(status int, problem string) {
	r.t.Helper()
	if r.status != status || r.problem() != problem {
		r.t.Errorf("got %d %q (%s), want %d %q", r.status, r.problem(), r.body, status, problem)
	}
}

// do calls the API; body is nil, a string (as it is) or something to marshal.
// headers are pairs of name and value.
func (h *house) do(method, path string, body any, headers ...string) reply {
	h.t.Helper()
	var raw io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		raw = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			h.t.Fatal(err)
		}
		raw = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, h.url+path, raw)
	if err != nil {
		h.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
	}
	res, err := client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return reply{t: h.t, status: res.StatusCode, header: res.Header, body: data}
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }
