package basehttp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/goleak"

	"usher/internal/basehttp"
)

func TestMain(m *testing.M) {
	// fasthttp keeps a clock for the life of a process, and a server's cleaner
	// sleeps out its ten seconds after the server has gone.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// syncBuffer is a log that a test may read while the server writes.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serve runs a server with the routes until the test ends.
func serve(t *testing.T, o basehttp.Options, routes func(r fiber.Router)) (url string, s *basehttp.Server, log *syncBuffer) {
	t.Helper()
	log = &syncBuffer{}
	o.Name, o.Log = "test", slog.New(slog.NewJSONHandler(log, nil))
	s = basehttp.NewServer(o)
	routes(s.App)
	addr, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()} //nolint:errcheck // the type of a variable of net/http
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := s.Shutdown(t.Context()); err != nil && !errors.Is(err, t.Context().Err()) {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + addr.String(), s, log
}

type answer struct {
	status int
	header http.Header
	body   string
	doc    map[string]any
}

func ask(t *testing.T, method, url string, body io.Reader, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: string(data)}
	_ = json.Unmarshal(data, &a.doc)
	return a
}

func (a answer) isProblem(t *testing.T, status int, slug string) {
	t.Helper()
	if a.status != status || a.doc["type"] != basehttp.TypeBase+slug {
		t.Errorf("got %d %s, want %d %s", a.status, a.body, status, slug)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %q", ct)
	}
	if a.header.Get("Cache-Control") != "no-store" {
		t.Error("a problem may be cached")
	}
	if a.doc["title"] == "" || a.doc["status"] != float64(status) {
		t.Errorf("not RFC 9457: %s", a.body)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	gone := basehttp.NewProblem(409, "seats-unavailable", "Some seats are taken")
	url, _, log := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Get("/ok", func(c *fiber.Ctx) error { return c.SendString("ok") })
		r.Get("/gone", func(*fiber.Ctx) error {
			return fmt.Errorf("hold: %w", gone.Detailf("F5 is taken.").With("seats", []string{"F5"}).After(1200*time.Millisecond))
		})
		r.Get("/broken", func(*fiber.Ctx) error { return errors.New("pq: password is hunter2") })
		r.Get("/away", func(*fiber.Ctx) error { return basehttp.ErrUnavailable.Because(errors.New("inner")) })
		r.Get("/fiber", func(*fiber.Ctx) error { return fiber.NewError(418, "a teapot's detail") })
	})
	if a := ask(t, "GET", url+"/ok", nil); a.status != 200 || a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %d %v", a.status, a.header)
	}
	a := ask(t, "GET", url+"/gone", nil)
	a.isProblem(t, 409, "seats-unavailable")
	if a.doc["detail"] != "F5 is taken." || fmt.Sprint(a.doc["seats"]) != "[F5]" || a.header.Get("Retry-After") != "2" {
		t.Errorf("got %s, Retry-After %q", a.body, a.header.Get("Retry-After"))
	}
	if gone.Detail != "" || gone.Fields != nil {
		t.Error("the template was changed by a copy")
	}
	a = ask(t, "GET", url+"/broken", nil)
	a.isProblem(t, 500, "internal")
	if strings.Contains(a.body, "hunter2") {
		t.Errorf("an inner error was shown: %s", a.body)
	}
	if !strings.Contains(log.String(), "hunter2") {
		t.Error("the inner error is not in the log")
	}
	ask(t, "GET", url+"/away", nil).isProblem(t, 503, "unavailable")
	ask(t, "GET", url+"/fiber", nil).isProblem(t, 418, "bad-request")
	ask(t, "GET", url+"/nowhere", nil).isProblem(t, 404, "not-found")
	ask(t, "POST", url+"/ok", nil).isProblem(t, 405, "method-not-allowed")
	ask(t, "POST", url+"/ok", strings.NewReader(strings.Repeat("x", 65<<10))).isProblem(t, 413, "body-too-large")
	if !strings.Contains(log.String(), `"problem":"seats-unavailable"`) {
		t.Error("the line of a request does not name its problem")
	}
}

// fasthttp refuses these before Fiber's handlers run; a client gets a problem
// document all the same.
func TestHeadersTooLarge(t *testing.T) {
	t.Parallel()
	url, _, _ := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Get("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
	})
	ask(t, "GET", url, nil, "X-Big", strings.Repeat("a", 32<<10)).isProblem(t, 431, "headers-too-large")
	// Fifty cookies of a browser that has seen much fit.
	if a := ask(t, "GET", url, nil, "Cookie", strings.Repeat("c=12345678901234567890;", 500)); a.status != 200 {
		t.Errorf("11 kB of cookies: %d %s", a.status, a.body)
	}
}

func TestMalformedRequest(t *testing.T) {
	t.Parallel()
	url, _, _ := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Post("/", func(c *fiber.Ctx) error { return c.SendString("taken") })
	})
	for name, raw := range map[string]string{
		"not HTTP":          "hello\r\n\r\n",
		"malformed chunk":   "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
		"two lengths":       "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
		"length and chunks": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.WriteString(conn, raw); err != nil {
				t.Fatal(err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			if res.StatusCode != 400 || res.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("got %s, %s", res.Status, res.Header.Get("Content-Type"))
			}
		})
	}
}

func TestDecodeJSON(t *testing.T) {
	t.Parallel()
	type body struct {
		Seats []string `json:"seats"`
		Best  *struct {
			Count int `json:"count"`
		} `json:"best"`
	}
	handler := func(optional bool) fiber.Handler {
		return func(c *fiber.Ctx) error {
			var b body
			if err := basehttp.DecodeJSON(c, &b, optional); err != nil {
				return err
			}
			return c.JSON(b)
		}
	}
	url, _, _ := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Post("/needed", handler(false))
		r.Post("/optional", handler(true))
	})
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write([]byte(`{"seats":["` + strings.Repeat("A", 10<<20) + `"]}`))
	_ = z.Close()
	for _, c := range []struct {
		name, path, body, slug, field string
		status                        int
		header                        []string
	}{
		{name: "good", path: "/needed", body: `{"seats":["F5"]}`, status: 200},
		{name: "charset", path: "/needed", body: `{}`, status: 200, header: []string{"Content-Type", "application/json; charset=utf-8"}},
		{name: "trailing space", path: "/needed", body: "{}\n ", status: 200},
		{name: "absent", path: "/needed", status: 400, slug: "invalid-body"},
		{name: "absent, optional", path: "/optional", status: 200},
		{name: "unknown field", path: "/needed", body: `{"seat":["F5"]}`, status: 400, slug: "unknown-field", field: "seat"},
		{name: "unknown field, optional", path: "/optional", body: `{"x":1}`, status: 400, slug: "unknown-field", field: "x"},
		{name: "wrong type", path: "/needed", body: `{"seats":"F5"}`, status: 400, slug: "invalid-body", field: "seats"},
		{name: "wrong type inside", path: "/needed", body: `{"best":{"count":"two"}}`, status: 400, slug: "invalid-body", field: "best.count"},
		{name: "fraction", path: "/needed", body: `{"best":{"count":1.5}}`, status: 400, slug: "invalid-body", field: "best.count"},
		{name: "too big a number", path: "/needed", body: `{"best":{"count":1e99}}`, status: 400, slug: "invalid-body", field: "best.count"},
		{name: "a list", path: "/needed", body: `[]`, status: 400, slug: "invalid-body"},
		{name: "null", path: "/needed", body: `null`, status: 400, slug: "invalid-body"},
		{name: "null, optional", path: "/optional", body: `null`, status: 400, slug: "invalid-body"},
		{name: "two documents", path: "/needed", body: `{} {}`, status: 400, slug: "invalid-body"},
		{name: "rubbish behind", path: "/needed", body: `{}x`, status: 400, slug: "invalid-body"},
		{name: "cut", path: "/needed", body: `{"seats":["F`, status: 400, slug: "invalid-body"},
		{name: "not JSON", path: "/needed", body: `seats=F5`, status: 400, slug: "invalid-body"},
		{name: "form", path: "/needed", body: `seats=F5`, status: 415, slug: "unsupported-media-type", header: []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{name: "no type", path: "/needed", body: `{}`, status: 415, slug: "unsupported-media-type", header: []string{"Content-Type", ""}},
		{name: "gzip", path: "/needed", body: bomb.String(), status: 415, slug: "unsupported-media-type", header: []string{"Content-Encoding", "gzip"}},
		{name: "gzip, no body", path: "/optional", status: 415, slug: "unsupported-media-type", header: []string{"Content-Encoding", "gzip"}},
		{name: "deep", path: "/needed", body: strings.Repeat("[", 30_000), status: 400, slug: "invalid-body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, "POST", url+c.path, strings.NewReader(c.body), append([]string{"Content-Type", "application/json"}, c.header...)...)
			if c.status == 200 {
				if a.status != 200 {
					t.Errorf("got %d %s", a.status, a.body)
				}
				return
			}
			a.isProblem(t, c.status, c.slug)
			if c.field != "" && a.doc["field"] != c.field {
				t.Errorf("field %v, want %s", a.doc["field"], c.field)
			}
		})
	}
}

func TestIdempotencyKeyAndBearer(t *testing.T) {
	t.Parallel()
	url, _, _ := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Get("/:need", func(c *fiber.Ctx) error {
			key, err := basehttp.IdempotencyKey(c, c.Params("need") == "yes")
			if err != nil {
				return err
			}
			return c.SendString(key + "|" + basehttp.BearerToken(c))
		})
	})
	ask(t, "GET", url+"/yes", nil).isProblem(t, 400, "idempotency-key-missing")
	ask(t, "GET", url+"/no", nil, "Idempotency-Key", strings.Repeat("k", 129)).isProblem(t, 400, "idempotency-key-invalid")
	ask(t, "GET", url+"/no", nil, "Idempotency-Key", "a b").isProblem(t, 400, "idempotency-key-invalid")
	ask(t, "GET", url+"/no", nil, "Idempotency-Key", "ключ").isProblem(t, 400, "idempotency-key-invalid")
	for header, want := range map[string]string{"Bearer t1": "k|t1", "bearer  t1 ": "k|t1", "Basic t1": "k|", "Bearer": "k|", "": "k|"} {
		if a := ask(t, "GET", url+"/yes", nil, "Idempotency-Key", "k", "Authorization", header); a.body != want {
			t.Errorf("%q: got %q, want %q", header, a.body, want)
		}
	}
}

func TestClientIP(t *testing.T) {
	t.Parallel()
	trusted := []string{"127.0.0.1", "10.0.0.0/8", "::1"}
	url, _, _ := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Get("/none", func(c *fiber.Ctx) error { return c.SendString(basehttp.ClientIP(c, nil)) })
		r.Get("/trusted", func(c *fiber.Ctx) error { return c.SendString(basehttp.ClientIP(c, trusted)) })
	})
	for _, c := range []struct{ path, header, want string }{
		{"/none", "203.0.113.9", "127.0.0.1"}, // nobody is trusted: a forged header names nobody
		{"/trusted", "", "127.0.0.1"},
		{"/trusted", "203.0.113.9", "203.0.113.9"},
		{"/trusted", "6.6.6.6, 203.0.113.9", "203.0.113.9"},           // the first was written by the client
		{"/trusted", "6.6.6.6, 203.0.113.9, 10.1.2.3", "203.0.113.9"}, // through one of ours
		{"/trusted", "203.0.113.9, rubbish", "127.0.0.1"},
		{"/trusted", "10.1.2.3", "127.0.0.1"},
		{"/trusted", "2001:db8::7", "2001:db8::7"},
		{"/trusted", "::ffff:203.0.113.9", "203.0.113.9"},
		{"/trusted", "6.6.6.6, ::ffff:10.1.2.3", "6.6.6.6"},
	} {
		if a := ask(t, "GET", url+c.path, nil, "X-Forwarded-For", c.header); a.body != c.want {
			t.Errorf("%s %q: got %q, want %q", c.path, c.header, a.body, c.want)
		}
	}
	// Two headers of that name are one list.
	req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/trusted", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["X-Forwarded-For"] = []string{"6.6.6.6", "203.0.113.9"}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if b, _ := io.ReadAll(res.Body); string(b) != "203.0.113.9" {
		t.Errorf("two headers: got %q", b)
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	url, _, _ := serve(t, basehttp.Options{}, func(fiber.Router) {})
	addr := strings.TrimPrefix(url, "http://")
	_, err := basehttp.NewServer(basehttp.Options{Name: "edge"}).Listen(t.Context(), addr)
	if err == nil || !strings.Contains(err.Error(), addr+" is taken") || !strings.Contains(err.Error(), "USHER_EDGE_ADDR") {
		t.Errorf("got %v", err)
	}
}

// A request that was accepted is answered, and what comes after the drain began
// is told to close its connection.
func TestDrain(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	url, s, _ := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Get("/slow", func(c *fiber.Ctx) error {
			close(entered)
			<-release
			return c.SendString("done")
		})
		r.Get("/fast", func(c *fiber.Ctx) error { return c.SendString("ok") })
	})
	slow := make(chan answer, 1)
	go func() { slow <- ask(t, "GET", url+"/slow", nil) }()
	<-entered
	s.Drain()
	res, err := http.Get(url + "/fast") //nolint:noctx // kept alive on purpose
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if !res.Close {
		t.Error("the connection is kept while draining")
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(t.Context()) }()
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a request running: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if a := <-slow; a.status != 200 || a.body != "done" {
		t.Errorf("the running request got %d %q", a.status, a.body)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("still accepting")
	}
}

func TestQuietAndObserve(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	url, _, log := serve(t, basehttp.Options{
		Quiet: func(c *fiber.Ctx) bool { return strings.HasPrefix(c.Path(), "/poll") },
		Observe: func(route, method string, status int, _ time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf("%s %s %d", method, route, status))
		},
	}, func(r fiber.Router) {
		r.Get("/poll/:id", func(c *fiber.Ctx) error {
			if c.Params("id") == "bad" {
				return basehttp.ErrBadRequest
			}
			return c.SendString("ok")
		})
	})
	ask(t, "GET", url+"/poll/1", nil)
	if strings.Contains(log.String(), "/poll/1") {
		t.Error("a poll was logged")
	}
	ask(t, "GET", url+"/poll/bad", nil)
	if !strings.Contains(log.String(), "/poll/bad") {
		t.Error("a failed poll was not logged")
	}
	ask(t, "GET", url+"/made/up/"+strings.Repeat("x", 500), nil)
	mu.Lock()
	defer mu.Unlock()
	// Labels are a closed set: neither ids nor made-up addresses are among them.
	if got, want := strings.Join(seen, ", "), "GET /poll/:id 200, GET /poll/:id 400, GET other 404"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
