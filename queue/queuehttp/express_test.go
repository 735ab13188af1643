package queuehttp

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"usher/internal/basehttp"
)

// beside serves the edge's routes once more, without the express way, or counting it.
func (e *edge) beside(t *testing.T, taken *atomic.Int64) string {
	t.Helper()
	s := basehttp.NewServer(basehttp.Options{Name: "edge", Log: quiet(), Quiet: Quiet})
	e.server.Register(s.App)
	if taken != nil {
		s.Express(func(ctx *fasthttp.RequestCtx) string {
			route := e.server.Express(ctx)
			if route != "" {
				taken.Add(1)
			}
			return route
		})
	}
	addr, err := s.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve() })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		wg.Wait()
	})
	return "http://" + addr.String()
}

// Whichever way a poll is answered, the answer is the same, header by header; and only
// plain polls go the short way.
func TestTheExpressAnswersAsFiberDoes(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	var taken atomic.Int64
	express, fiber := e.beside(t, &taken), e.beside(t, nil)
	e.api(t).join("Idempotency-Key", "first")
	joined := e.api(t).join("Idempotency-Key", "second")
	token, other := joined.text("token"), "usher_place_cinema="
	e.api(t).join("Idempotency-Key", "behind")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) { // until the next board knows them
		if v, err := e.line.Room("cinema"); err == nil && v.Waiting == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the board never tells of three")
		}
	}
	const path = "/v1/rooms/cinema/place"
	auth := []string{"Authorization", "Bearer " + token}
	for name, c := range map[string]struct {
		method, path string
		header       []string
		short        bool
	}{
		"a program's poll":        {"GET", path, auth, true},
		"with what was shown":     {"GET", path + "?shown=1.0.600.100", auth, true},
		"nonsense as shown":       {"GET", path + "?shown=zzz", auth, true},
		"a browser's poll":        {"GET", path + "?shown=2", []string{"Cookie", "a=b; " + other + token + "; c=d"}, true},
		"scheme in small letters": {"GET", path, []string{"Authorization", "bearer " + token}, true},
		"a bearer before cookies": {"GET", path, []string{"Authorization", "Bearer x", "Cookie", other + token}, false},
		"no token":                {"GET", path, nil, false},
		"a forged token":          {"GET", path, []string{"Authorization", "Bearer " + token[:len(token)-1] + "-"}, false},
		"an escaped query":        {"GET", path + "?shown=%31", auth, false},
		"another query":           {"GET", path + "?x=1&shown=1", auth, false},
		"an escaped room":         {"GET", "/v1/rooms/cin%65ma/place", auth, false},
		"another room":            {"GET", "/v1/rooms/nowhere/place", auth, false},
		"no room":                 {"GET", "/v1/rooms//place", auth, false},
		"a folder below":          {"GET", "/v1/rooms/cinema/x/place", auth, false},
		"a slash behind":          {"GET", path + "/", auth, false},
		"HEAD":                    {"HEAD", path, auth, false},
		"a page of another site":  {"GET", path, append([]string{"Origin", "https://elsewhere.example"}, auth...), false},
		"packed nothing":          {"GET", path, append([]string{"Content-Encoding", "identity"}, auth...), true},
	} {
		ask := func(base string) (status int, header http.Header, body string) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, base+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(c.header); i += 2 {
				req.Header.Set(c.header[i], c.header[i+1])
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.Header.Get("X-Request-Id")) != 36 {
				t.Errorf("%s: the request has no id: %v", name, resp.Header)
			}
			for _, k := range []string{"X-Request-Id", "Date", "Content-Length"} {
				resp.Header.Del(k)
			}
			return resp.StatusCode, resp.Header, everTheSame(string(b))
		}
		before := taken.Load()
		status, header, body := ask(express)
		if short := taken.Load() > before; short != c.short {
			t.Errorf("%s: went the short way: %v", name, short)
		}
		wantStatus, wantHeader, wantBody := ask(fiber)
		if status != wantStatus || body != wantBody || len(header) != len(wantHeader) {
			t.Errorf("%s:\n%d %v %s\n%d %v %s", name, status, header, body, wantStatus, wantHeader, wantBody)
		}
		for k := range wantHeader {
			if got, want := strings.Join(header[k], "|"), strings.Join(wantHeader[k], "|"); got != want {
				t.Errorf("%s: %s is %q, want %q", name, k, got, want)
			}
		}
	}
}

// everTheSame takes out what is drawn by lot or tells the age of the board.
func everTheSame(body string) string {
	return regexp.MustCompile(`"(pollAfterMs|lowSeconds|highSeconds)":\d+|"(serverTime|asOf|at)":"[^"]*"|[0-9a-f-]{36}`).ReplaceAllString(body, "")
}
