package basehttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
)

const formType = "application/x-www-form-urlencoded"

// What must be unpacked or taken apart is refused before any handler, whatever
// the address, and before fasthttp has spent memory on it.
func TestPackedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	routes := func(r fiber.Router) {
		r.All("/", func(c *fiber.Ctx) error {
			reached.Add(1)
			return c.SendString(c.FormValue("f") + fmt.Sprint(len(c.Body())))
		})
	}
	url, _, _ := serve(t, basehttp.Options{}, routes)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write([]byte("f=" + strings.Repeat("A", 10<<20)))
	_ = z.Close()
	parts := "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nv\r\n--b--\r\n"
	for name, header := range map[string][]string{
		"gzip form":        {"Content-Type", formType, "Content-Encoding", "gzip"},
		"odd case":         {"Content-Type", formType, "Content-Encoding", "GZip"},
		"unknown encoding": {"Content-Type", formType, "Content-Encoding", "x-made-up"},
		"two encodings":    {"Content-Type", formType, "Content-Encoding", "identity, br"},
	} {
		ask(t, "POST", url, bytes.NewReader(bomb.Bytes()), header...).isProblem(t, 415, "unsupported-media-type")
		ask(t, "GET", url, nil, header...).isProblem(t, 415, "unsupported-media-type")
		ask(t, "POST", url+"/nowhere", bytes.NewReader(bomb.Bytes()), header...).isProblem(t, 415, "unsupported-media-type")
		if reached.Load() > 0 {
			t.Fatalf("%s reached a handler", name)
		}
	}
	for _, ct := range []string{"multipart/form-data; boundary=b", "Multipart/Mixed; boundary=b"} {
		ask(t, "POST", url, strings.NewReader(parts), "Content-Type", ct).isProblem(t, 415, "unsupported-media-type")
	}
	if reached.Load() > 0 {
		t.Fatal("parts reached a handler")
	}
	if a := ask(t, "POST", url, strings.NewReader("f=v"), "Content-Type", formType, "Content-Encoding", "identity"); a.status != 200 {
		t.Errorf("identity: %d %s", a.status, a.body)
	}
	taking, _, _ := serve(t, basehttp.Options{Multipart: true}, routes)
	if a := ask(t, "POST", taking, strings.NewReader(parts), "Content-Type", "multipart/form-data; boundary=b"); a.status != 200 || !strings.HasPrefix(a.body, "v") {
		t.Errorf("a server that takes parts: %d %s", a.status, a.body)
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	var kept atomic.Value
	url, _, _ := serve(t, basehttp.Options{Multipart: true}, func(r fiber.Router) {
		r.Post("/", func(c *fiber.Ctx) error {
			get, err := basehttp.Form(c)
			if err != nil {
				return err
			}
			kept.CompareAndSwap(nil, get("pass"))
			return c.SendString(get("pass") + "|" + get("absent"))
		})
	})
	if a := ask(t, "POST", url+"/?pass=query&absent=query", strings.NewReader("pass=a%20b&pass=c"), "Content-Type", formType+"; charset=utf-8"); a.body != "a b|" {
		t.Errorf("got %d %q", a.status, a.body)
	}
	for range 3 { // the buffers are used again
		ask(t, "POST", url, strings.NewReader("pass=zzz"), "Content-Type", formType)
	}
	if kept.Load() != "a b" {
		t.Errorf("the value was no copy: %q", kept.Load())
	}
	for _, ct := range []string{"", "text/plain", "application/json", "multipart/form-data; boundary=b"} {
		body := "pass=x"
		if strings.HasPrefix(ct, "multipart") {
			body = "--b\r\nContent-Disposition: form-data; name=\"pass\"\r\n\r\nv\r\n--b--\r\n"
		}
		ask(t, "POST", url+"/?pass=query", strings.NewReader(body), "Content-Type", ct).isProblem(t, 415, "unsupported-media-type")
	}
}

// One handler's panic is one request's 500; the server goes on.
func TestPanicIsA500(t *testing.T) {
	t.Parallel()
	url, _, log := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Get("/boom", func(c *fiber.Ctx) error {
			_ = c.SendString("half an answer")
			panic("a nil map, say")
		})
		r.Get("/ok", func(c *fiber.Ctx) error { return c.SendString("ok") })
	})
	a := ask(t, "GET", url+"/boom", nil)
	a.isProblem(t, 500, "internal")
	if strings.Contains(a.body, "nil map") || strings.Contains(a.body, "half") {
		t.Errorf("the answer tells too much: %s", a.body)
	}
	if !strings.Contains(log.String(), "a nil map, say") || !strings.Contains(log.String(), "access_test.go") {
		t.Errorf("no panic, or no stack, in the log: %s", log.String())
	}
	if a := ask(t, "GET", url+"/ok", nil); a.status != 200 {
		t.Errorf("after it: %d", a.status)
	}
}

// lines are the requests in the log.
func lines(t *testing.T, log *syncBuffer) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var doc map[string]any
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatal(err)
		}
		if doc["msg"] == "request" {
			out = append(out, doc)
		}
	}
	return out
}

// An operator learns why the answer was 503, a client does not.
func TestCausesAreLogged(t *testing.T) {
	t.Parallel()
	inner := basehttp.ErrBadRequest.Because(errors.New("disk of pg-1 is full"))
	url, _, log := serve(t, basehttp.Options{}, func(r fiber.Router) {
		r.Get("/away", func(*fiber.Ctx) error {
			return fmt.Errorf("hold: %w", basehttp.ErrUnavailable.Because(fmt.Errorf("write: %w", inner)))
		})
		r.Get("/wrong", func(*fiber.Ctx) error { return basehttp.ErrBadRequest.Because(errors.New("a client's matter")) })
	})
	for range 3 {
		if a := ask(t, "GET", url+"/away", nil); strings.Contains(a.body, "pg-1") {
			t.Errorf("the cause was sent: %s", a.body)
		}
	}
	ask(t, "GET", url+"/wrong", nil)
	warned := 0
	for _, l := range lines(t, log) {
		text := fmt.Sprint(l["err"])
		if l["status"] == 503.0 && (!strings.Contains(text, "disk of pg-1 is full") || !strings.Contains(text, "hold:")) {
			t.Errorf("err: %s", text)
		}
		if l["status"] == 400.0 && l["err"] != nil {
			t.Errorf("the line of a 400 has a cause: %s", text)
		}
		if l["level"] == "WARN" {
			warned++
		}
	}
	if warned == 0 || warned == 3 {
		t.Errorf("%d of 3 failures were warnings; one a second should be", warned)
	}
}

// In an outage each poll of each fan fails; the log must survive it.
func TestQuietWhileFailing(t *testing.T) {
	t.Parallel()
	url, _, log := serve(t, basehttp.Options{Quiet: func(*fiber.Ctx) bool { return true }}, func(r fiber.Router) {
		r.Get("/poll", func(*fiber.Ctx) error { return basehttp.ErrUnavailable.Because(errors.New("redis is away")) })
		r.Get("/bug", func(*fiber.Ctx) error { return errors.New("a bug") })
	})
	start := time.Now()
	for range 100 {
		ask(t, "GET", url+"/poll", nil)
		ask(t, "GET", url+"/bug", nil)
	}
	most := 2 * (int(time.Since(start)/time.Second) + 1)
	if n := len(lines(t, log)); n < 2 || n > most {
		t.Errorf("%d lines for 200 failed polls, want 2 to %d", n, most)
	}
	if !strings.Contains(log.String(), "redis is away") || !strings.Contains(log.String(), "a bug") {
		t.Errorf("no cause: %s", log.String())
	}
}

// What Fiber or fasthttp answer before the middleware has a document, a line
// and a count like the rest.
func TestEarlyRefusals(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	url, _, log := serve(t, basehttp.Options{BodyLimit: 1000, Observe: func(route, method string, status int, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		seen[fmt.Sprint(route, " ", status)]++
	}}, func(r fiber.Router) {
		r.Get("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
		r.Use("/v1", func(c *fiber.Ctx) error { return c.Next() })
		r.Get("/v1/x", func(c *fiber.Ctx) error { return c.SendString("ok") })
	})
	ask(t, "FOO", url+"/v1/x", nil).isProblem(t, 405, "method-not-allowed")
	if a := ask(t, "FOO", url+"/v1/x", nil); a.header.Get("Allow") == "" || a.header.Get("X-Request-Id") == "" {
		t.Errorf("headers: %v", a.header)
	}
	ask(t, "PUT", url+"/v1/x", nil).isProblem(t, 405, "method-not-allowed")
	ask(t, "POST", url+"/", nil).isProblem(t, 405, "method-not-allowed")
	ask(t, "POST", url+"/v1/x", strings.NewReader(strings.Repeat("x", 2000))).isProblem(t, 413, "body-too-large")
	ask(t, "GET", url+"/v1/x", nil, "X-Big", strings.Repeat("a", 32<<10)).isProblem(t, 431, "headers-too-large")
	ask(t, "GET", url+"/", nil, "Content-Encoding", "gzip").isProblem(t, 415, "unsupported-media-type")
	ask(t, "GET", url+"/", nil)
	mu.Lock()
	defer mu.Unlock()
	if got, want := fmt.Sprint(seen), "map[/ 200:1 other 405:4 other 413:1 other 415:1 other 431:1]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := len(lines(t, log)); n != 8 {
		t.Errorf("%d lines of 8", n)
	}
}

// A connection that is opened and closed, or left idle, is no request.
func TestNoLineWithoutARequest(t *testing.T) {
	t.Parallel()
	url, _, log := serve(t, basehttp.Options{IdleTimeout: 50 * time.Millisecond, ReadTimeout: 50 * time.Millisecond}, func(r fiber.Router) {
		r.Get("/", func(c *fiber.Ctx) error { return c.SendString("ok") })
	})
	for _, send := range []string{"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, send)
		_, _ = io.ReadAll(conn) // until the server gives up
		_ = conn.Close()
	}
	for _, l := range lines(t, log) {
		if l["status"] != 200.0 {
			t.Errorf("a line for nothing: %v", l)
		}
	}
}

// A server whose start failed elsewhere is shut down twice without a complaint.
func TestShutdownAgain(t *testing.T) {
	t.Parallel()
	s := basehttp.NewServer(basehttp.Options{Name: "test"})
	if _, err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	for range 3 {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
