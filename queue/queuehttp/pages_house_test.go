package queuehttp

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/admission/pass"
	"usher/internal/basehttp"
	"usher/internal/devstack/devstacktest"
	"usher/queue"
)

// house is an edge with its own Redis, a room, and a box office that only takes
// note of what is posted to it.
type house struct {
	t       *testing.T
	base    string
	room    string
	line    *queue.Line
	booking *httptest.Server
	mu      sync.Mutex
	version int64
	entered []url.Values // forms posted to /enter
	change  func(*Options)
	server  *Server
}

func newHouse(t *testing.T, rate, slots int) *house {
	t.Helper()
	return newHouseWith(t, rate, slots, func(*Options) {})
}

func newHouseWith(t *testing.T, rate, slots int, change func(*Options)) *house {
	t.Helper()
	o, err := redis.ParseURL(devstacktest.OwnRedis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	o.ContextTimeoutEnabled = true
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	line, err := queue.New(rdb, queue.Options{PlaceSecrets: [][]byte{bytes.Repeat([]byte("p"), 32)}, BoardEvery: 100 * time.Millisecond, Tick: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, room: "hall", line: line, change: change}
	h.booking = httptest.NewServer(http.HandlerFunc(h.enter))
	t.Cleanup(h.booking.Close)
	h.set("open", rate, slots)
	h.run(line)
	h.serve()
	return h
}

// set changes the room; rate 0 calls nobody.
func (h *house) set(state string, rate, slots int) {
	h.t.Helper()
	h.version++
	err := h.line.PutSettings(h.t.Context(), queue.Settings{
		Room: h.room, Title: "The Hall", Mode: "fifo", State: state, RatePerMinute: rate, Cap: slots, Run: 1, Version: h.version, BookingURL: h.booking.URL,
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) run(line *queue.Line) {
	ctx, cancel := context.WithCancel(context.Background())
	room := h.room // a test may go on to another
	var wg sync.WaitGroup
	wg.Go(func() { _ = line.Run(ctx) })
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = line.PutReport(ctx, room, queue.Report{At: time.Unix(1, 0), Available: 412, Total: 850})
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	})
	h.t.Cleanup(func() { cancel(); wg.Wait() })
}

func (h *house) serve() {
	ring, err := pass.NewRing(time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	srv := basehttp.NewServer(basehttp.Options{Name: "edge", Log: quiet()})
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own listener
	if err != nil {
		h.t.Fatal(err)
	}
	h.base = "http://" + ln.Addr().String()
	o := Options{Line: h.line, Keys: func() pass.Ring { return ring }, PublicURL: h.base, Log: quiet(), Streams: 64}
	if h.change != nil {
		h.change(&o)
	}
	h.server = New(o)
	h.server.Register(srv.App)
	srv.Express(h.server.Express)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.server.Run(ctx) })
	wg.Go(func() { _ = srv.App.Listener(ln) })
	h.t.Cleanup(func() { h.server.Drain(); _ = srv.App.Shutdown(); cancel(); wg.Wait() })
}

func (h *house) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path == "/enter" {
		_ = r.ParseForm()
		h.mu.Lock()
		h.entered = append(h.entered, r.PostForm)
		h.mu.Unlock()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html><title>Box office</title><h1>Box office</h1>")
}

func (h *house) visits() []url.Values {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]url.Values(nil), h.entered...)
}

// fill puts n strangers in line.
func (h *house) fill(n int) {
	h.t.Helper()
	for i := range n {
		if _, err := h.line.Join(h.t.Context(), h.room, queue.Fan{ID: "stranger-" + strconv.Itoa(i)}); err != nil {
			h.t.Fatal(err)
		}
	}
}

// visitor is a browser without script: cookies, redirects, forms.
type visitor struct {
	*http.Client
	h *house
}

func (h *house) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return &visitor{&http.Client{Jar: jar, Timeout: 10 * time.Second}, h}
}

func (v *visitor) do(method, target string, form url.Values, header ...string) (*http.Response, string) {
	v.h.t.Helper()
	req, err := http.NewRequestWithContext(v.h.t.Context(), method, target, strings.NewReader(form.Encode()))
	if err != nil {
		v.h.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", v.h.base)
	}
	for i := 1; i < len(header); i += 2 {
		req.Header.Set(header[i-1], header[i])
	}
	resp, err := v.Do(req)
	if err != nil {
		v.h.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.h.t.Fatal(err)
	}
	return resp, string(body)
}

func (v *visitor) page() (*http.Response, string) {
	v.h.t.Helper()
	return v.do(http.MethodGet, v.h.base+"/rooms/"+v.h.room, nil)
}

func (v *visitor) form(verb string) (*http.Response, string) {
	v.h.t.Helper()
	return v.do(http.MethodPost, v.h.base+"/rooms/"+v.h.room+"/"+verb, nil)
}

// until reloads the page, as its meta refresh does, until it is in that state.
func (v *visitor) until(state string) string {
	v.h.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		_, body := v.page()
		if stateIn(body) == state {
			return body
		}
		if time.Now().After(deadline) {
			v.h.t.Fatalf("the page never got to %q; it is at %q", state, stateIn(body))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

var (
	stateRE    = regexp.MustCompile(`id="room" data-state="(\w+)"`)
	positionRE = regexp.MustCompile(`id="place" data-len="\d+">([\d,.]+)<`)
	hiddenRE   = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]+)">`)
	actionRE   = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
)

func find(re *regexp.Regexp, body string) string {
	if m := re.FindStringSubmatch(body); m != nil {
		return m[1]
	}
	return ""
}

func stateIn(body string) string { return find(stateRE, body) }

func positionIn(body string) int {
	n, _ := strconv.Atoi(strings.NewReplacer(",", "", ".", "").Replace(find(positionRE, body)))
	return n
}
