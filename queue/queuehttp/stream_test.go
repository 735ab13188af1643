package queuehttp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"usher/queue"
)

// listener is a client of one stream.
type listener struct {
	t   *testing.T
	res *http.Response
	r   *bufio.Reader
}

func (f fan) listen(header ...string) (*listener, answer) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.e.base+"/v1/rooms/"+f.e.room+"/place/stream", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	client := &http.Client{Jar: f.client.Jar} // no time limit: it would end the stream
	res, err := client.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		a := answer{status: res.StatusCode, header: res.Header}
		a.body, _ = io.ReadAll(res.Body)
		_ = json.Unmarshal(a.body, &a.doc)
		return nil, a
	}
	f.t.Cleanup(func() { _ = res.Body.Close() })
	return &listener{t: f.t, res: res, r: bufio.NewReader(res.Body)}, answer{status: res.StatusCode, header: res.Header}
}

// next is the next event's document; false at the end of the stream.
func (l *listener) next() (answer, bool) {
	l.t.Helper()
	name := ""
	for {
		line, err := l.r.ReadString('\n')
		if err != nil {
			return answer{}, false
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			a := answer{body: []byte(value)}
			if err := json.Unmarshal(a.body, &a.doc); err != nil || name != "place" {
				l.t.Fatalf("event %q: %s: %v", name, value, err)
			}
			return a, true
		}
	}
}

// until reads events until one fits; a stream that ends before is a failure.
func (l *listener) until(what string, fits func(answer) bool) answer {
	l.t.Helper()
	for {
		a, ok := l.next()
		if !ok {
			l.t.Fatalf("the stream ended before: %s", what)
		}
		if fits(a) {
			return a
		}
	}
}

func is(status string) func(answer) bool {
	return func(a answer) bool { return a.text("status") == status }
}

func TestAStreamTellsFromTheLineToTheEnd(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1) // rate 0: nobody is called yet
	first, second := e.browser(t), e.browser(t)
	first.send("GET", "/rooms/"+e.room, "") // the page's cookie, so that the pass is bound to the browser
	first.join()
	join := second.join()
	if join.doc["stream"] != true {
		t.Fatalf("no hint of the stream: %s", join.body)
	}
	l, a := second.listen()
	if l == nil {
		t.Fatalf("no stream: %d %s", a.status, a.body)
	}
	if ct := a.header.Get("Content-Type"); ct != "text/event-stream" || a.header.Get("X-Request-Id") == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("header %v", a.header)
	}
	doc := l.until("the place as it stands", is("waiting"))
	if doc.num("position") != 2 || doc.text("placeId") != join.text("placeId") {
		t.Fatalf("the first event: %s", doc.body)
	}
	if left := first.send("DELETE", "/v1/rooms/"+e.room+"/place", ""); left.status != 204 {
		t.Fatalf("leave: %d %s", left.status, left.body)
	}
	l.until("one less ahead", func(a answer) bool { return a.num("position") == 1 })
	e.settings(t, e.room, 2, 6000, 1, "open")
	called := l.until("the call", is("called"))
	if called.text("calledUntil") == "" {
		t.Fatalf("called without an end: %s", called.body)
	}
	second.pass()
	l.until("the admission", is("admitted"))
	if a, more := l.next(); more {
		t.Fatalf("after the end: %s", a.body)
	}
	if _, again := second.listen(); again.status != http.StatusNoContent {
		t.Fatalf("a stream for a place that has ended: %d %s", again.status, again.body)
	}
	if strings.Contains(e.logs.String(), "place/stream") {
		t.Fatalf("streams are logged: %s", e.logs.String())
	}
}

// The position told by a stream follows the rule of polls: it never grows.
func TestQ8_AStreamNeverTellsAHigherNumber(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1)
	tokens := make([]string, 5)
	f := e.api(t)
	for i := range tokens {
		tokens[i] = f.join("Idempotency-Key", fmt.Sprintf("a-key-of-fan-%02d", i)).text("token")
	}
	head := func(i int) []string { return []string{"Authorization", "Bearer " + tokens[i]} }
	l, a := f.listen(head(4)...)
	if l == nil {
		t.Fatalf("no stream: %d %s", a.status, a.body)
	}
	if got := l.until("a number", is("waiting")).num("position"); got != 5 {
		t.Fatalf("position %d", got)
	}
	// The first three leave, and one of them comes back by an operator's hand, before this fan.
	for i := range 3 {
		f.send("DELETE", "/v1/rooms/"+e.room+"/place", "", head(i)...)
	}
	l.until("three less ahead", func(a answer) bool { return a.num("position") == 2 })
	if err := e.rdb.ZAdd(t.Context(), "usher:{"+e.room+"}:wait", z(1, "0123456789abcdef")).Err(); err != nil {
		t.Fatal(err)
	}
	poll := func() int {
		return f.send("GET", "/v1/rooms/"+e.room+"/place", "", head(4)...).num("position")
	}
	for deadline := time.Now().Add(20 * time.Second); poll() != 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the board does not show who came back")
		}
	}
	for range 2 { // what moves with everybody is told each five seconds
		if a, ok := l.next(); !ok || a.num("position") > 2 {
			t.Fatalf("told %s", a.body)
		}
	}
}

func TestStreamsAreForTheHeadAndForGoodTokens(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1)
	f := e.api(t)
	if _, a := f.listen(); a.slug() != "place-token-missing" {
		t.Fatalf("no token: %d %s", a.status, a.body)
	}
	if _, a := f.listen("Authorization", "Bearer nonsense"); a.slug() != "place-token-invalid" {
		t.Fatalf("a broken token: %d %s", a.status, a.body)
	}
	var members []any
	for i := range queue.Near {
		members = append(members, fmt.Sprintf("%016d", i))
	}
	for i, m := range members {
		if err := e.rdb.ZAdd(t.Context(), "usher:{"+e.room+"}:wait", z(float64(i+1), m)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	far := f.join("Idempotency-Key", "a-key-of-somebody-far")
	if far.num("position") != queue.Near+1 || far.doc["stream"] != nil {
		t.Fatalf("far back: %s", far.body)
	}
	_, a := f.listen(bearer(far)...)
	if a.slug() != "not-near-the-head" || a.header.Get("Retry-After") == "" {
		t.Fatalf("far back: %d %s", a.status, a.body)
	}
	if a := f.send("HEAD", "/v1/rooms/"+e.room+"/place/stream", "", bearer(far)...); a.status != 409 {
		t.Fatalf("HEAD: %d", a.status)
	}
}

func TestStreamsAreBoundedAndOnePlaceTakesFew(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1) // 64 streams
	f := e.api(t)
	one := f.join("Idempotency-Key", "a-key-of-a-greedy-fan")
	var mine []*listener
	for range streamsAPlace + 1 {
		l, a := f.listen(bearer(one)...)
		if l == nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		l.until("the place", is("waiting"))
		mine = append(mine, l)
	}
	if a, ok := mine[0].next(); ok {
		t.Fatalf("the oldest stream of a place goes on: %s", a.body)
	}
	for i := 0; e.server.streams.hub.Free(); i++ {
		other := f.join("Idempotency-Key", fmt.Sprintf("a-key-of-fan-%04d", i))
		if l, a := f.listen(bearer(other)...); l == nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	late := f.join("Idempotency-Key", "a-key-of-a-late-fan")
	if late.doc["stream"] != nil {
		t.Fatalf("a hint although none is free: %s", late.body)
	}
	_, a := f.listen(bearer(late)...)
	if a.status != 503 || a.slug() != "streams-full" || a.header.Get("Retry-After") == "" {
		t.Fatalf("one too many: %d %s", a.status, a.body)
	}
}

// However many streams there are, the store is asked once a tick for all of them.
func TestStreamsAskTogether(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 40)
	f := e.api(t)
	var all []*listener
	for i := range 30 {
		l, a := f.listen(bearer(f.join("Idempotency-Key", fmt.Sprintf("a-key-of-fan-%04d", i)))...)
		if l == nil {
			t.Fatalf("%d %s", a.status, a.body)
		}
		l.until("the place", is("waiting"))
		all = append(all, l)
	}
	e.settings(t, e.room, 2, 60_000, 40, "open")
	for _, l := range all {
		l.until("the call", is("called"))
	}
	// From here on all 30 are called and looked up again each second.
	rounds := e.pipelines.n.Load()
	start := time.Now()
	for e.pipelines.n.Load() < rounds+3 {
		if time.Since(start) > 20*time.Second {
			t.Fatal("nobody asks")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if took := time.Since(start); took < 1500*time.Millisecond {
		t.Fatalf("three round trips for called fans within %s: more than one a second", took)
	}
}

// A line that is reset ends its streams: the polls tell why.
func TestAStreamEndsWithItsRun(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1)
	f := e.browser(t)
	f.join()
	l, _ := f.listen()
	l.until("the place", is("waiting"))
	if err := e.line.PutSettings(t.Context(), queue.Settings{
		Room: e.room, Title: "Cinema", Mode: "fifo", State: "open", Cap: 1, Run: 2, Version: 2, BookingURL: "http://booking.test/",
	}); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := l.next(); !ok {
			return
		}
	}
}
