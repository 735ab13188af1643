package basehttp

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

func TestExpress(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	var seen []string
	s := NewServer(Options{Name: "edge", Log: slog.New(slog.NewTextHandler(&logs, nil)), Observe: func(route, method string, status int, _ time.Duration) {
		seen = append(seen, strings.Join([]string{strings.Clone(route), strings.Clone(method), http.StatusText(status)}, " "))
	}})
	s.App.Get("/*", func(c *fiber.Ctx) error { return c.SendString("fiber") })
	s.App.Post("/*", func(c *fiber.Ctx) error { return c.SendString("fiber") })
	s.Express(func(ctx *fasthttp.RequestCtx) string {
		switch string(ctx.RequestURI()) {
		case "/fast":
			ctx.SetBodyString("express")
			return "/fast"
		case "/panic":
			ctx.SetBodyString("half an answer")
			panic("a mistake")
		}
		return ""
	})
	addr, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve() }()
	ask := func(method, path, body string) (int, http.Header, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr.String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		if resp.Close { // the client takes the header away
			resp.Header.Set("Connection", "close")
		}
		return resp.StatusCode, resp.Header, string(b)
	}
	for _, c := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"GET", "/fast", "", "express", 200},
		{"GET", "/slow", "", "fiber", 200},
		{"POST", "/fast", "", "fiber", 200},
		{"GET", "/fast", "a body", "fiber", 200},
		{"GET", "/panic", "", "internal", 500},
	} {
		status, header, body := ask(c.method, c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) || strings.Contains(body, "half") {
			t.Errorf("%s %s: %d %q", c.method, c.path, status, body)
		}
		if len(header.Get("X-Request-Id")) != 36 || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: %v", c.method, c.path, header)
		}
	}
	s.Drain()
	if _, header, _ := ask("GET", "/fast", ""); header.Get("Connection") != "close" {
		t.Errorf("an express answer while the server drains keeps its connection: %v", header)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-done
	if len(seen) != 6 || seen[0] != "/fast GET OK" || !strings.HasSuffix(seen[4], "GET Internal Server Error") {
		t.Errorf("observed %q", seen)
	}
	if !strings.Contains(logs.String(), "a handler panicked") || strings.Contains(logs.String(), "path=/fast") && strings.Count(logs.String(), "path=/fast") != 2 {
		t.Errorf("logged %s", logs.String())
	}
}
