package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/configs"
	"usher/internal/faultproxy"
)

// everything is all roles on stores of their own, Postgres behind a proxy that can
// stall, edge and box office behind a gateway that can fail after they have answered.
type everything struct {
	*App
	t             *testing.T
	postgres      *faultproxy.Proxy
	edge, booking *gateway
	operator      string
}

func startEverything(t *testing.T) *everything {
	t.Helper()
	folder, err := openDevFolder("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.close() })
	e := &everything{t: t, edge: newGateway(t), booking: newGateway(t), operator: folder.secrets.Operator}
	base := devBase(folder)
	for key, value := range map[string]any{
		"edge.addr": "127.0.0.1:0", "booking.addr": "127.0.0.1:0", "sandbox.addr": "127.0.0.1:0", "admin.addr": "127.0.0.1:0",
		"edge.publicURL": e.edge.url, "booking.publicURL": e.booking.url, "shutdown.drainDelay": "1ms",
	} {
		base[key] = value
	}
	live, err := configs.NewLive(configs.Source{Base: base, Role: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	d := &dev{folder: folder, cfg: live.Get(), log: quietLog}
	prepare := func(ctx context.Context) (Stores, error) {
		s, err := d.stores(ctx)
		if err != nil {
			return s, err
		}
		own, err := url.Parse(s.PostgresURL)
		if err != nil {
			return s, err
		}
		if e.postgres, err = faultproxy.New("unix://" + own.Query().Get("host") + "/.s.PGSQL.5432"); err != nil {
			return s, err
		}
		s.PostgresURL = "postgres://usher@" + e.postgres.Addr() + "/usher?sslmode=disable"
		stop := s.Stop
		s.Stop = func(ctx context.Context) error { return errors.Join(e.postgres.Close(), stop(ctx)) }
		return s, nil
	}
	if e.App, err = New(Options{Role: "dev", Config: live, Log: quietLog, Prepare: prepare}); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	e.edge.to("http://" + e.Addr("edge"))
	e.booking.to("http://" + e.Addr("booking"))
	<-e.bridge.Load().first
	return e
}

// inLine is the room's line as an operator is told it.
func (e *everything) inLine(room string) lineDoc {
	e.t.Helper()
	_, body := get(e.t, "GET", "http://"+e.Addr("admin")+"/v1/admin/rooms/"+room, e.operator, "")
	var doc adminRoomDoc
	if err := json.Unmarshal([]byte(body), &doc); err != nil || doc.Line == nil {
		e.t.Fatalf("%v: %s", err, body)
	}
	return *doc.Line
}

func (e *everything) count(sql string, args ...any) (n int) {
	e.t.Helper()
	if err := e.pool.QueryRow(e.t.Context(), sql, args...).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

// gateway hands requests on; one that was told to fail answers 502 in place of the
// answer that has come, as balancers do.
type gateway struct {
	url    string
	target atomic.Pointer[url.URL]
	fails  atomic.Bool
	worked atomic.Int64 // the status that nobody was told
}

func newGateway(t *testing.T) *gateway {
	g := &gateway{}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(g.target.Load()); r.Out.Host = r.In.Host },
		ModifyResponse: func(r *http.Response) error {
			if !g.fails.CompareAndSwap(true, false) {
				return nil
			}
			g.worked.Store(int64(r.StatusCode))
			return errors.New("fails after the answer")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	g.url = s.URL
	return g
}

func (g *gateway) to(target string) {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	g.target.Store(u)
}

// lostAdmission loses the reply of the next claim that admits somebody.
type lostAdmission struct{ armed, lost atomic.Bool }

func (l *lostAdmission) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lostAdmission) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lostAdmission) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		c, ok := cmd.(*redis.Cmd)
		if !ok || err != nil || !l.armed.Load() {
			return err
		}
		if reply, err := c.Slice(); err != nil || len(reply) == 0 || reply[0] != "admitted" {
			return nil
		}
		l.armed.Store(false)
		l.lost.Store(true)
		c.SetErr(io.ErrUnexpectedEOF)
		return io.ErrUnexpectedEOF
	}
}

// browser keeps cookies.
type browser struct {
	*http.Client
	t *testing.T
}

func (b browser) send(method, url, body string, header ...string) (int, map[string]any) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("Sec-Fetch-Site", "same-origin") // as a browser says of a page's own calls
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := b.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	doc := map[string]any{}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		doc["text"] = string(data)
	}
	return res.StatusCode, doc
}

// A fan meets a fault of ours after every single step that counted: the claim whose
// reply the edge loses, the pass, the session and the hold whose answers a gateway
// turns into 502, and a database that stalls. Each time the fan just asks again.
func TestQ14_AFaultRightAfterAdmissionCostsNothing(t *testing.T) {
	t.Parallel()
	e := startEverything(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	fan := browser{&http.Client{Jar: jar, Timeout: 20 * time.Second}, t}
	line, office := e.edge.url+"/v1/rooms/cinema", e.booking.url+"/v1"
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain for: %s", what)
			}
		}
	}
	until("the room", func() bool { status, doc := fan.send("GET", line, ""); return status == 200 && doc["state"] == "open" })
	fan.send("POST", line+"/places", "") // gives the browser its cookie
	status, place := fan.send("POST", line+"/places", "")
	if status != 200 {
		t.Fatalf("join: %d %v", status, place)
	}

	lost := &lostAdmission{}
	lost.armed.Store(true)
	e.rdb.AddHook(lost)
	until("an admission whose reply is lost", func() bool {
		status, doc := fan.send("POST", line+"/pass", "")
		if status == 201 {
			t.Fatal("the reply came")
		}
		if lost.lost.Load() && status < 500 {
			t.Fatalf("the lost reply was answered by %d %v", status, doc)
		}
		return lost.lost.Load()
	})
	if l := e.inLine("cinema"); l.Admitted != 1 || l.Inside != 1 {
		t.Fatalf("the fault was to come after the admission: %+v", l)
	}

	// fault makes one request that is worked on and answered by 502, and then again
	// until it is answered; it tells what was hidden and what came.
	fault := func(g *gateway, again int, method, url, body string, header ...string) map[string]any {
		t.Helper()
		g.fails.Store(true)
		if status, doc := fan.send(method, url, body, header...); status != 502 || g.worked.Load() != 201 {
			t.Fatalf("%s %s: %d after %d: %v", method, url, status, g.worked.Load(), doc)
		}
		status, doc := fan.send(method, url, body, header...)
		if status != again {
			t.Fatalf("%s %s again: %d %v", method, url, status, doc)
		}
		return doc
	}
	got := fault(e.edge, 201, "POST", line+"/pass", "")
	if status, doc := fan.send("POST", line+"/pass", ""); status != 201 || doc["pass"] != got["pass"] || doc["binding"] != got["binding"] {
		t.Errorf("asked again, another pass: %d", status)
	}
	if status, doc := fan.send("GET", line+"/place", ""); status != 200 || doc["status"] != "admitted" || doc["placeId"] != place["placeId"] {
		t.Errorf("the place: %d %v", status, doc)
	}
	if status, doc := fan.send("POST", line+"/places", ""); status != 200 || doc["placeId"] != place["placeId"] || doc["status"] != "admitted" {
		t.Errorf("joined once more: %d %v", status, doc)
	}

	exchange := fmt.Sprintf(`{"pass":%q,"binding":%q}`, got["pass"], got["binding"])
	session := fault(e.booking, 200, "POST", office+"/sessions", exchange)
	if status, doc := fan.send("GET", office+"/session", ""); status != 200 || doc["sessionId"] != session["sessionId"] {
		t.Errorf("the session: %d %v", status, doc)
	}
	status, shows := fan.send("GET", office+"/showtimes?room=cinema", "")
	list, _ := shows["showtimes"].([]any)
	if status != 200 || len(list) == 0 {
		t.Fatalf("showtimes: %d %v", status, shows)
	}
	show, _ := list[0].(map[string]any)
	holds := fmt.Sprintf("%s/showtimes/%s/holds", office, show["showtimeId"])
	hold := fault(e.booking, 200, "POST", holds, `{"seats":["G7","G8"]}`)
	if status, doc := fan.send("GET", fmt.Sprintf("%s/holds/%s", office, hold["holdId"]), ""); status != 200 || doc["holdId"] != hold["holdId"] {
		t.Errorf("the hold: %d %v", status, doc)
	}

	// The database stalls in the middle of the next wish: a 5xx of the box office's own.
	e.postgres.Stall()
	if status, doc := fan.send("POST", holds, `{"seats":["G7","G8"]}`); status < 500 {
		t.Errorf("without a database: %d %v", status, doc)
	}
	e.postgres.Resume()
	until("the database is back", func() bool {
		status, doc := fan.send("POST", holds, `{"seats":["G7","G8"]}`)
		return status == 200 && doc["holdId"] == hold["holdId"] && doc["expiresAt"] == hold["expiresAt"]
	})

	// All that happened once.
	until("one admission, and its session is told to the line", func() bool {
		l := e.inLine("cinema")
		if l.Admitted != 1 || l.Inside > 1 {
			t.Fatalf("counted twice: %+v", l)
		}
		return l.Inside == 1
	})
	if n := e.count(`SELECT count(*) FROM session WHERE room_id = 'cinema'`); n != 1 {
		t.Errorf("%d sessions", n)
	}
	if n := e.count(`SELECT count(*) FROM hold`); n != 1 {
		t.Errorf("%d holds", n)
	}
	if n := e.count(`SELECT count(*) FROM show_seat WHERE hold_id IS NOT NULL`); n != 2 {
		t.Errorf("%d seats held", n)
	}
}
