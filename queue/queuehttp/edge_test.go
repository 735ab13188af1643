package queuehttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"usher/admission/pass"
	"usher/internal/basehttp"
	"usher/internal/devstack/devstacktest"
	"usher/queue"
)

// edge is one edge listening, with a Redis of its own and a line that runs.
type edge struct {
	base string
	line *queue.Line
	ring pass.Ring
	logs *lockedBuffer
	room string

	options queue.Options

	rdb       *redis.Client
	pipelines *pipelines
	server    *Server
	metrics   *prometheus.Registry
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newEdge(t *testing.T, rate, slots int, change ...func(*queue.Options)) *edge {
	t.Helper()
	return newEdgeWith(t, rate, slots, func(*Options) {}, change...)
}

// newEdgeWith also changes what its HTTP is told.
func newEdgeWith(t *testing.T, rate, slots int, serve func(*Options), change ...func(*queue.Options)) *edge {
	t.Helper()
	ro, err := redis.ParseURL(devstacktest.OwnRedis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(ro)
	t.Cleanup(func() { _ = rdb.Close() })
	many := &pipelines{}
	rdb.AddHook(many)
	e := &edge{rdb: rdb, pipelines: many, logs: &lockedBuffer{}, room: "cinema", metrics: prometheus.NewRegistry()}
	log := slog.New(slog.NewTextHandler(e.logs, nil))
	o := queue.Options{Log: log, PlaceSecrets: [][]byte{bytes.Repeat([]byte("s"), 32)}, ReportTTL: time.Minute}
	for _, f := range change {
		f(&o)
	}
	if e.line, err = queue.New(rdb, o); err != nil {
		t.Fatal(err)
	}
	if e.ring, err = pass.NewRing(time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	e.settings(t, e.room, 1, rate, slots, "open")
	if err := e.line.PutReport(t.Context(), e.room, queue.Report{At: time.Unix(1, 0), Available: 12, Total: 180}); err != nil {
		t.Fatal(err)
	}
	e.options = o
	e.up(t, serve)
	return e
}

// twin is another edge of the same Redis and the same keys.
func (e *edge) twin(t *testing.T) *edge {
	t.Helper()
	other := *e
	other.metrics = prometheus.NewRegistry()
	var err error
	if other.line, err = queue.New(e.rdb, e.options); err != nil {
		t.Fatal(err)
	}
	other.up(t, func(*Options) {})
	return &other
}

// up serves, and waits until the room is known.
func (e *edge) up(t *testing.T, serve func(*Options)) {
	t.Helper()
	server := basehttp.NewServer(basehttp.Options{Name: "edge", Log: e.options.Log, Quiet: Quiet})
	ho := Options{Line: e.line, Keys: func() pass.Ring { return e.ring }, Log: e.options.Log, Streams: 64, Registerer: e.metrics}
	serve(&ho)
	e.server = New(ho)
	e.server.Register(server.App)
	server.Express(e.server.Express)
	addr, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e.base = "http://" + addr.String()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve() })
	wg.Go(func() { _ = e.line.Run(ctx) })
	wg.Go(func() { _ = e.server.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		_ = server.Shutdown(stop)
		wg.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if v, err := e.line.Room(e.room); err == nil && v.InventoryOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the line does not run")
		}
	}
}

func (e *edge) settings(t *testing.T, room string, version int64, rate, slots int, state string) {
	t.Helper()
	if err := e.line.PutSettings(t.Context(), queue.Settings{
		Room: room, Title: "Cinema", Mode: "fifo", State: state, RatePerMinute: rate, Cap: slots, Run: 1,
		Version: version, BookingURL: "http://booking.test/",
	}); err != nil {
		t.Fatal(err)
	}
}

// pipelines counts round trips of several commands.
type pipelines struct{ n atomic.Int64 }

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) > 7*20 { // of many members: others' work is smaller
			p.n.Add(1)
		}
		return next(ctx, cmds)
	}
}

func z(score float64, member any) redis.Z { return redis.Z{Score: score, Member: member} }

// answer is a response, read.
type answer struct {
	status int
	header http.Header
	body   []byte
	doc    map[string]any
}

// slug is the last part of a problem's type, "" when the answer is none.
func (a answer) slug() string {
	s, _ := a.doc["type"].(string)
	return strings.TrimPrefix(s, basehttp.TypeBase)
}

func (a answer) text(key string) string { s, _ := a.doc[key].(string); return s }

func (a answer) num(key string) int { n, _ := a.doc[key].(float64); return int(n) }

type fan struct {
	t      *testing.T
	e      *edge
	client *http.Client
}

// browser keeps cookies, api keeps none.
func (e *edge) browser(t *testing.T) fan {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return fan{t, e, &http.Client{Jar: jar, Timeout: 10 * time.Second}}
}

func (e *edge) api(t *testing.T) fan { return fan{t, e, &http.Client{Timeout: 10 * time.Second}} }

func (f fan) cookie(name string) string {
	u, _ := url.Parse(f.e.base)
	for _, c := range f.client.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// send makes one request; header pairs follow the body.
func (f fan) send(method, path, body string, header ...string) answer {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.e.base+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := f.client.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.body, err = io.ReadAll(res.Body); err != nil {
		f.t.Fatal(err)
	}
	_ = json.Unmarshal(a.body, &a.doc)
	return a
}

func (f fan) join(header ...string) answer {
	f.t.Helper()
	a := f.send("POST", "/v1/rooms/"+f.e.room+"/places", "", header...)
	if a.status != 200 && a.status != 201 {
		f.t.Fatalf("join: %d %s", a.status, a.body)
	}
	return a
}

// bearer is the header that presents a join's token.
func bearer(join answer) []string { return []string{"Authorization", "Bearer " + join.text("token")} }

// pass asks until the pass comes.
func (f fan) pass(header ...string) answer {
	f.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		a := f.send("POST", "/v1/rooms/"+f.e.room+"/pass", "", header...)
		if a.status == 201 {
			return a
		}
		if a.slug() != "not-called-yet" && a.slug() != "stand-by" || time.Now().After(deadline) {
			f.t.Fatalf("pass: %d %s", a.status, a.body)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (e *edge) claims(t *testing.T, token string) pass.Claims {
	t.Helper()
	v := pass.NewVerifier(pass.RingSource(func() pass.Ring { return e.ring }, time.Now), nil)
	c, err := v.Verify(token)
	if err != nil {
		t.Fatalf("the pass does not verify: %v", err)
	}
	return c
}
