package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"usher/admission/pass"
	"usher/booking"
	"usher/booking/bookinghttp"
	"usher/configs"
	"usher/internal/basehttp"
	"usher/internal/devstack"
	"usher/internal/rounds"
	"usher/queue"
)

func TestMain(m *testing.M) {
	// fasthttp keeps a clock for the life of a process, and a server's cleaner
	// sleeps out its ten seconds after the server has gone.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

var quietLog = slog.New(slog.DiscardHandler)

func TestTeardownOrderAndErrors(t *testing.T) {
	t.Parallel()
	var td teardown
	var order []string
	note := func(name string, err error) {
		td.push(name, func(context.Context) error { order = append(order, name); return err })
	}
	broken := errors.New("broken")
	note("store", nil)
	note("loop", broken)
	note("server", nil)
	err := td.unwind(t.Context())
	if got := strings.Join(order, " "); got != "server loop store" {
		t.Errorf("order: %s", got)
	}
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "loop:") {
		t.Errorf("got %v", err)
	}
	if err := td.unwind(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("a second unwind did something: %v %v", err, order)
	}
}

// One step that hangs does not keep the others from being undone.
func TestTeardownStepThatHangs(t *testing.T) {
	t.Parallel()
	var td teardown
	release := make(chan struct{})
	defer close(release)
	closed := make(chan struct{})
	td.push("store", func(context.Context) error { close(closed); return nil })
	td.push("stuck", func(context.Context) error { <-release; return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := td.unwind(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("got %v", err)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the store was never closed")
	}
}

// sandboxApp is the one role that needs no store.
func sandboxApp(t *testing.T, change func(*configs.Config)) *App {
	t.Helper()
	c := configs.Default()
	c.Sandbox.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0"
	c.Payment.APIKey, c.Payment.Secrets = configs.Secret(newSecret()), []configs.Secret{configs.Secret(newSecret())}
	c.Shutdown.DrainDelay = time.Millisecond
	if change != nil {
		change(&c)
	}
	a, err := New(Options{Role: "sandbox", Config: configs.Fixed(c), Log: quietLog})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestStartStopAgainAndAgain(t *testing.T) {
	t.Parallel()
	for range 20 {
		a := sandboxApp(t, nil)
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Stop(), a.Stop()); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever fails while starting, what was started before is taken down.
func TestStartThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	a := sandboxApp(t, nil)
	broken := errors.New("no stores today")
	stopped := false
	a.opts.Prepare = func(context.Context) (Stores, error) {
		return Stores{Stop: func(context.Context) error { stopped = true; return nil }}, broken
	}
	if err := a.Start(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if !stopped {
		t.Error("what Prepare had started was not stopped")
	}
	if res, err := http.Get("http://" + a.Addr("sandbox") + "/"); err == nil { //nolint:noctx // refused at once
		_ = res.Body.Close()
		t.Error("a listener is left open")
	}
}

func get(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var b strings.Builder
	buf := make([]byte, 64<<10)
	for {
		n, err := res.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return res.StatusCode, b.String()
		}
	}
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestAdminListener(t *testing.T) {
	t.Parallel()
	a := sandboxApp(t, func(c *configs.Config) {
		c.Operators = []configs.Operator{
			{Name: "vi", Role: configs.RoleViewer, TokenHash: hashOf("viewer-token")},
			{Name: "op", Role: configs.RoleOperator, TokenHash: strings.ToUpper(hashOf("operator-token"))},
			{Name: "both", Role: configs.RoleBoxOffice, TokenHash: hashOf("operator-token")},
		}
		c.Operators[1].TokenHash = "sha256:" + strings.TrimPrefix(c.Operators[1].TokenHash, "SHA256:")
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	}()
	url := "http://" + a.Addr("admin")
	for _, c := range []struct {
		method, path, token string
		status              int
		want                string
	}{
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/readyz", "", 200, "ready"},
		{"GET", "/metrics", "", 200, `usher_http_requests_total{listener="admin"`},
		{"GET", "/v1/admin/rooms", "", 401, "unauthorized"},
		{"GET", "/v1/admin/rooms", "wrong", 401, "unauthorized"},
		{"POST", "/v1/admin/rooms/x/pause", "viewer-token", 403, "forbidden"},
		{"GET", "/v1/admin/rooms", "viewer-token", 404, "no-rooms-here"},
		{"POST", "/v1/admin/rooms/x/pause", "operator-token", 404, "no-rooms-here"},
		{"GET", "/nowhere", "", 404, "not-found"},
	} {
		if status, body := get(t, c.method, url+c.path, c.token, ""); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s (%s): %d %.300s", c.method, c.path, c.token, status, body)
		}
	}
	if actor, ok := a.operator("operator-token", configs.RoleBoxOffice); !ok || actor != "both" {
		t.Errorf("a token with two roles: %q %v", actor, ok)
	}
	if _, ok := a.operator("", configs.RoleViewer); ok {
		t.Error("no token is somebody")
	}
	a.ready.Store(false)
	if status, body := get(t, "GET", url+"/readyz", "", ""); status != 503 || !strings.Contains(body, "not-ready") {
		t.Errorf("not ready: %d %s", status, body)
	}
}

// fakeLine is the bridge's other end.
type fakeLine struct {
	mu       sync.Mutex
	settings map[string]queue.Settings
	reports  map[string]queue.Report
	revoked  []string
	fail     func(room string) error
	silent   map[string]bool
}

func (f *fakeLine) PutSettings(ctx context.Context, s queue.Settings) error {
	f.mu.Lock()
	silent := f.silent[s.Room]
	f.mu.Unlock()
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := f.fail(s.Room); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings[s.Room] = s
	return ctx.Err()
}

func (f *fakeLine) PutReport(_ context.Context, room string, r queue.Report) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reports[room] = r
	return nil
}

func (f *fakeLine) PutRevoked(_ context.Context, room string, r queue.Revoked) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revoked = append(f.revoked, fmt.Sprint(room, " ", r.Version, " ", r.Customers))
	return nil
}

func (f *fakeLine) Recovery(context.Context, string) (queue.Recovery, error) {
	return queue.Recovery{Incarnation: 1}, nil
}

func (f *fakeLine) First(context.Context, string, int64) error { return nil }

func (f *fakeLine) PutServed(context.Context, string, []queue.Served) error { return nil }

func (f *fakeLine) Resume(context.Context, string, int64, time.Time) (bool, error) { return false, nil }

type fakeOffice struct{ reports []booking.RoomReport }

func (f fakeOffice) FirstMemory(context.Context, string, int64) (bool, error) { return true, nil }

func (f fakeOffice) Served(context.Context, string, string, int) ([]booking.Visit, string, error) {
	return nil, "", nil
}

func (f fakeOffice) Revoked(room string) *booking.Revoked {
	if room != "room-4" {
		return nil
	}
	return &booking.Revoked{Version: 5, Customers: map[string]bool{"bot": true}}
}

func (f fakeOffice) Reports(context.Context) ([]booking.RoomReport, error) { return f.reports, nil }

// fakeRooms opens rooms, or cannot.
type fakeRooms struct {
	err    error
	before func() // called in OpenDue
}

func (f *fakeRooms) OpenDue(context.Context) ([]booking.RoomStep, error) {
	if f.before != nil {
		f.before()
	}
	return nil, f.err
}

func TestBridgeShipsEveryRoomItCan(t *testing.T) {
	t.Parallel()
	at := time.Now()
	office := fakeOffice{}
	for i := range 20 {
		office.reports = append(office.reports, booking.RoomReport{
			Room: booking.Room{ID: fmt.Sprint("room-", i), Title: "T", Mode: "fifo", State: "open", RatePerMinute: 60, Cap: i, Run: 2, Version: int64(i)},
			At:   at, Seq: 7, Available: 3, Total: 5, SoldOut: i == 1,
			Living: []booking.SlotRef{{PlaceID: "p", JTI: "j"}}, Ended: []booking.SlotRef{{PlaceID: "q", JTI: "k"}},
			Lanes: booking.LaneReport{QueueWait: time.Millisecond, Batch: 2 * time.Millisecond, Depth: 3, Shed: 4},
		})
	}
	broken := errors.New("a slot moved")
	line := &fakeLine{settings: map[string]queue.Settings{}, reports: map[string]queue.Report{}}
	line.fail = func(room string) error {
		if room == "room-3" {
			return broken
		}
		return nil
	}
	reg, _ := newRegistry()
	metrics, err := newBridgeMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	rooms := &fakeRooms{err: errors.New("no room opens today"), before: func() {
		if len(line.settings) > 0 && len(line.reports) != 19 {
			t.Error("rooms are opened in the middle of a turn")
		}
	}}
	b := &bridge{rooms: rooms, office: office, line: line, bookingURL: "http://b", every: time.Second, metrics: metrics,
		log: slog.New(slog.NewTextHandler(&log, nil)), memory: map[string]lineMemory{}, failed: map[string]bool{}, first: make(chan struct{}),
		ships: rounds.Rounds[string]{Width: roomsAtOnce, Grace: time.Minute, Patience: time.Minute}}
	for range 3 {
		b.runOnce(t.Context())
		b.ships.Wait()
	}
	if len(line.settings) != 19 || len(line.reports) != 19 {
		t.Fatalf("shipped %d settings and %d reports of 19", len(line.settings), len(line.reports))
	}
	if got, want := fmt.Sprintf("%+v", line.settings["room-4"]), fmt.Sprintf("%+v", queue.Settings{Room: "room-4", Title: "T", Mode: "fifo", State: "open", RatePerMinute: 60, Cap: 4, Run: 2, Version: 4, BookingURL: "http://b", Guard: true}); got != want {
		t.Errorf("settings\n%s\nwant\n%s", got, want)
	}
	want := queue.Report{At: at, Seq: 7, Available: 3, Total: 5, SoldOut: true,
		Living: []queue.SlotRef{{PlaceID: "p", JTI: "j"}}, Ended: []queue.SlotRef{{PlaceID: "q", JTI: "k"}},
		Lanes: queue.LaneReport{QueueWait: time.Millisecond, Batch: 2 * time.Millisecond, Depth: 3, Shed: 4}}
	if got := fmt.Sprintf("%+v", line.reports["room-1"]); got != fmt.Sprintf("%+v", want) {
		t.Errorf("report\n%s\nwant\n%+v", got, want)
	}
	if n := strings.Count(log.String(), "cannot ship"); n != 1 || !strings.Contains(log.String(), "room-3") {
		t.Errorf("it complained %d times:\n%s", n, log.String())
	}
	if n := strings.Count(log.String(), "cannot be opened"); n != 1 || !strings.Contains(log.String(), "no room opens today") {
		t.Errorf("it complained %d times of rooms that are due:\n%s", n, log.String())
	}
	if got := fmt.Sprint(line.revoked); got != "[room-4 5 map[bot:true] room-4 5 map[bot:true] room-4 5 map[bot:true]]" {
		t.Errorf("revocations shipped: %s", got)
	}
	line.fail = func(string) error { return nil }
	rooms.err = nil
	b.runOnce(t.Context())
	b.ships.Wait()
	if !strings.Contains(log.String(), "ships again") || !strings.Contains(log.String(), "opened again") {
		t.Error("it does not say that it works again")
	}
	if err := b.push(t.Context(), booking.Room{ID: "room-9", State: "paused", Version: 99}); err != nil || line.settings["room-9"].State != "paused" {
		t.Errorf("push: %v %+v", err, line.settings["room-9"])
	}
}

// Rooms whose node of the cluster is silent, more than a turn ships at once, come first
// by name; the others' reports go all the same, or their lines would stop as well.
func TestTheBridgeShipsBesideASilentNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		office := fakeOffice{}
		line := &fakeLine{
			settings: map[string]queue.Settings{}, reports: map[string]queue.Report{}, silent: map[string]bool{},
			fail: func(string) error { return nil },
		}
		for i := range 3 * roomsAtOnce {
			room := fmt.Sprint("a-", i)
			line.silent[room] = true
			office.reports = append(office.reports, booking.RoomReport{Room: booking.Room{ID: room}})
		}
		office.reports = append(office.reports, booking.RoomReport{Room: booking.Room{ID: "hall"}})
		reg, _ := newRegistry()
		metrics, err := newBridgeMetrics(reg)
		if err != nil {
			t.Fatal(err)
		}
		b := &bridge{rooms: &fakeRooms{}, office: office, line: line, every: time.Second, metrics: metrics,
			log: quietLog, memory: map[string]lineMemory{}, failed: map[string]bool{}, first: make(chan struct{}),
			ships: rounds.Rounds[string]{Width: roomsAtOnce, Grace: time.Second, Patience: 2 * time.Second}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.run(ctx) }()
		for range 10 {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			line.mu.Lock()
			if _, ok := line.reports["hall"]; !ok {
				t.Error("no report for three seconds")
			}
			delete(line.reports, "hall")
			line.mu.Unlock()
		}
		line.mu.Lock()
		line.silent = nil
		line.mu.Unlock()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		line.mu.Lock()
		if len(line.reports) != len(office.reports) {
			t.Errorf("%d of %d rooms are shipped when the node is back", len(line.reports), len(office.reports))
		}
		line.mu.Unlock()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// With a window of its own the bridge would end the edge's invitations early.
func TestTheBridgeKeepsTheEdgesClaimWindow(t *testing.T) {
	t.Parallel()
	c := configs.Default()
	c.Edge.ClaimWindow = 7 * time.Minute
	a := &App{opts: Options{Config: configs.Fixed(c)}, log: quietLog}
	if got := a.bridgeLine().ClaimWindow; got != 7*time.Minute {
		t.Errorf("got %s", got)
	}
}

// Two stores that hang cost the time that is left once, not twice ten seconds.
func TestStoresStopBesideEachOther(t *testing.T) {
	t.Parallel()
	var servers []*devstack.Server
	for range 2 {
		dir, err := os.MkdirTemp("", "ua")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s, err := devstack.Redis(t.Context(), dir, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(s.Pid(), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := stopBoth(ctx, append(servers, nil)...); err != nil || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
	for _, s := range servers {
		select {
		case <-s.Done():
		default:
			t.Error("a store still runs")
		}
	}
}

func TestKeyringReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	if _, err := openKeyring(path, quietLog); err == nil {
		t.Error("a file that is not there was opened")
	}
	ring, err := pass.NewRing(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteRing(path, ring); err != nil {
		t.Fatal(err)
	}
	k, err := openKeyring(path, quietLog)
	if err != nil {
		t.Fatal(err)
	}
	two, err := ring.Add(time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteRing(path, two); err != nil {
		t.Fatal(err)
	}
	k.reload()
	if len(k.get().Keys()) != 2 {
		t.Error("the new ring is not in force")
	}
	for _, broken := range []string{"", "{}", `{"keys":[]}`} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		k.reload()
		if len(k.get().Keys()) != 2 {
			t.Errorf("%q put the old ring out of force", broken)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if k.reload(); len(k.get().Keys()) != 2 {
		t.Error("a file that is gone put the old ring out of force")
	}
}

func TestPublishedKeys(t *testing.T) {
	t.Parallel()
	ring, err := pass.NewRing(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var doc atomic.Pointer[string]
	var asked atomic.Int64
	publish := func(r pass.Ring) {
		data, err := r.JWKS(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		// A kind of key nobody here knows stands beside ours.
		s := strings.Replace(string(data), `"keys":[`, `"keys":[{"kty":"XYZ","kid":"odd"},`, 1)
		doc.Store(&s)
	}
	publish(ring)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if s := doc.Load(); s != nil {
			_, _ = w.Write([]byte(*s))
			return
		}
		http.Error(w, "down", http.StatusBadGateway)
	}))
	defer srv.Close()
	p := newPublished(srv.URL, quietLog)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- p.run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	p.await(10 * time.Second)
	first := ring.Keys()[0].ID
	if _, err := p.find(first); err != nil {
		t.Fatal(err)
	}

	// A thousand made-up ids cost hardly a request, and do not stand in the way
	// of a key that is new, nor of the fans who bring it all at once.
	for i := range 1000 {
		if _, err := p.find(fmt.Sprint("bogus-", i)); err == nil {
			t.Fatal("a key was made up")
		}
	}
	if n := asked.Load(); n > 5 {
		t.Errorf("%d requests for made-up ids", n)
	}
	two, err := ring.Add(time.Now(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	publish(two)
	second := two.Keys()[1].ID
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := p.find(second); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}

	// The edge is away, or answers rubbish: the last good set stays.
	empty := `{"keys":[]}`
	for _, broken := range []*string{nil, &empty} {
		doc.Store(broken)
		p.refresh(t.Context())
		for _, kid := range []string{first, second} {
			if _, err := p.find(kid); err != nil {
				t.Error(err)
			}
		}
	}
}

// A preflight bears no session, so it names no room: what any room allows, it is
// told; the call behind it is checked against its own room.
func TestAllowedOriginsOfTheSample(t *testing.T) {
	t.Parallel()
	c := configs.Default()
	c.Booking.AllowedOrigins = map[string][]string{"cinema": {"https://www.example.com"}, "stadium": {"https://b.example", "https://www.example.com"}, "*": {"https://all.example"}}
	a := &App{opts: Options{Config: configs.Fixed(c)}}
	for room, want := range map[string]string{
		"":        "https://all.example https://b.example https://www.example.com",
		"cinema":  "https://www.example.com https://all.example",
		"nowhere": "https://all.example",
	} {
		if got := strings.Join(a.allowedOrigins(room), " "); got != want {
			t.Errorf("room %q: %s, want %s", room, got, want)
		}
	}

	c.Booking.AllowedOrigins = map[string][]string{"cinema": {"https://www.example.com"}} // as in usher.yaml
	a = &App{opts: Options{Config: configs.Fixed(c)}}
	s, err := bookinghttp.New(bookinghttp.Options{Office: &booking.Office{}, Log: quietLog, EdgeURL: "http://edge.test", PublicURL: "http://booking.test", AllowedOrigins: a.allowedOrigins})
	if err != nil {
		t.Fatal(err)
	}
	server := basehttp.NewServer(basehttp.Options{Name: "booking", Log: quietLog})
	s.Register(server.App)
	addr, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	defer func() {
		if err := errors.Join(server.Shutdown(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	}()
	for origin, status := range map[string]int{"https://www.example.com": 204, "https://evil.example": 403} {
		req, err := http.NewRequestWithContext(t.Context(), "OPTIONS", "http://"+addr.String()+"/v1/showtimes/x/holds", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		req.Header.Set("Origin", origin)
		req.Header.Set("Access-Control-Request-Method", "POST")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if allow := res.Header.Get("Access-Control-Allow-Origin"); res.StatusCode != status || (status == 204) != (allow == origin) {
			t.Errorf("%s: %d, allowed %q", origin, res.StatusCode, allow)
		}
	}
}

// What fails while starting is told alone: not with the complaints of a teardown
// that closes what never served.
func TestAFailedStartTellsOneFault(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"sandbox", "booking"} {
		c := configs.Default()
		c.Sandbox.Addr, c.Booking.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		a, err := New(Options{Role: role, Config: configs.Fixed(c), Log: quietLog})
		if err != nil {
			t.Fatal(err)
		}
		a.parts = []part{{name: "broken", listener: role, build: func(*App) error { return errors.New("cannot be built") }}}
		if err := a.Start(t.Context()); err == nil || err.Error() != "app: broken: cannot be built" {
			t.Errorf("%s: got %v", role, err)
		}
	}
}

// Quiet is for what comes by the thousand and says nothing.
func TestQuiet(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	for _, c := range []struct {
		listener, path string
		want           bool
	}{
		{"edge", "/assets/usher.0123456789.css", true}, {"booking", "/assets/usher.0123456789.css", true},
		{"sandbox", "/static/pay.css", true}, {"edge", "/static/x", false},
		{"edge", "/v1/rooms/cinema/place", true}, {"booking", "/v1/showtimes/x/seats", true},
		{"booking", "/v1/bookings/x", false}, {"admin", "/metrics", true}, {"admin", "/v1/admin/rooms", false},
	} {
		ctx := &fasthttp.RequestCtx{}
		ctx.Request.Header.SetMethod("GET")
		ctx.Request.SetRequestURI(c.path)
		fc := app.AcquireCtx(ctx)
		if got := quiet(c.listener)(fc); got != c.want {
			t.Errorf("%s %s: %v", c.listener, c.path, got)
		}
		app.ReleaseCtx(fc)
	}
}

// An operator whose database is away is told so, and that nothing is known to
// have changed; one whose Redis is away, that the edges do not know yet.
func TestAdminWithoutStores(t *testing.T) {
	t.Parallel()
	a := sandboxApp(t, func(c *configs.Config) {
		c.Operators = []configs.Operator{{Name: "op", Role: configs.RoleOperator, TokenHash: hashOf("operator-token")}}
	})
	pool, err := pgxpool.New(t.Context(), "postgres://usher@/usher?host="+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	a.rooms = booking.NewRooms(pool)
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	}()
	url := "http://" + a.Addr("admin") + "/v1/admin/rooms"
	for _, c := range [][2]string{{"GET", url}, {"GET", url + "/cinema"}, {"POST", url + "/cinema/pause"}} {
		if status, body := get(t, c[0], c[1], "operator-token", ""); status != 503 || !strings.Contains(body, "problems/unavailable") {
			t.Errorf("%s %s: %d %s", c[0], c[1], status, body)
		}
	}
}

func TestTuneOfAnUnknownRole(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{Role: "kitchen", Config: configs.Fixed(configs.Default())}); err == nil || !strings.Contains(err.Error(), "edge, booking, sandbox, dev") {
		t.Errorf("got %v", err)
	}
}
