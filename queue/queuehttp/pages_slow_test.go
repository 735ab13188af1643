package queuehttp

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// slowEdge stands before a house and holds back the answers to polls.
type slowEdge struct {
	url   string
	delay atomic.Int64 // ns
	polls atomic.Int32 // that are being held back
}

func slowly(t *testing.T, h *house) *slowEdge {
	t.Helper()
	target, err := url.Parse(h.base)
	if err != nil {
		t.Fatal(err)
	}
	s := &slowEdge{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded(); r.Out.Host = target.Host }}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := time.Duration(s.delay.Load()); d > 0 && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/place") {
			s.polls.Add(1)
			defer s.polls.Add(-1)
			select {
			case <-time.After(d):
			case <-r.Context().Done():
				return
			}
		}
		if r.Header.Get("Origin") != "" {
			r.Header.Set("Origin", h.base)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

// Polls of four seconds against a timer of five: whoever is called while one is
// under way must come in all the same.
func TestBrowserIsTakenInPastSlowPolls(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	edge := slowly(t, h)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(edge.url+"/rooms/hall"))
	until(t, ctx, visible("waiting"))
	edge.delay.Store(int64(4 * time.Second))
	h.set("open", 6000, 5)
	until(t, ctx, `document.title === "Box office"`)
	if visits := h.visits(); len(visits) != 1 || visits[0].Get("pass") == "" {
		t.Errorf("the box office got %v", visits)
	}
}

// A press on Enter while a poll is under way is a claim at once. The tab counts as
// hidden, so that nothing but the press can be what took the fan in.
func TestBrowserEntersDuringAPoll(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 6000, 5)
	edge := slowly(t, h)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(edge.url+"/rooms/hall"))
	until(t, ctx, visible("called"))
	edge.delay.Store(int64(9 * time.Second))
	js[bool](t, ctx, `dispatchEvent(new Event("online"))`)
	stayOut(t, ctx)
	js[bool](t, ctx, `dispatchEvent(new Event("online"))`) // asks, though hidden
	for deadline := time.Now().Add(10 * time.Second); edge.polls.Load() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the page did not poll")
		}
	}
	pressed := time.Now()
	js[bool](t, ctx, click(`#enter button`))
	until(t, ctx, `document.title === "Box office"`)
	if took := time.Since(pressed); took > 8*time.Second {
		t.Errorf("the press waited %s for the poll", took)
	}
}

// answers replaces the edge's by those of the test: window.answer is the place.
const answers = `(() => {
  const doc = (more) => Object.assign({placeId: "p", token: "not-a-real-token", position: 0, ahead: 0, waiting: 0, pollAfterMs: 60000,
    room: {room: "called", state: "open", mode: "fifo", waiting: 0, claimSeconds: 3, inventory: {available: 1}}}, more);
  window.claims = 0; window.polls = 0; window.notes = [];
  window.Notification = class { static permission = "granted"; constructor(title) { notes.push(title); } close() {} };
  window.place = {status: "called", standingBy: true};
  window.fetch = async (url, init) => {
    if (init.method === "POST") { claims++; return new Response("{}", {status: 503}); }
    polls++;
    return new Response(JSON.stringify(doc(place)), {status: 200});
  };
  return true;
})()`

// At the door in a hidden tab: the title and a notice say so, the tab looks again
// every half claim window, claims nothing while nobody looks, and at once then.
func TestQ16_HiddenTabAtTheDoor(t *testing.T) {
	t.Parallel()
	base := gallery(t)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(base+"/rooms/near"))
	until(t, ctx, visible("waiting"))
	stayOut(t, ctx)
	js[bool](t, ctx, answers)
	js[bool](t, ctx, `dispatchEvent(new Event("online"))`)
	until(t, ctx, visible("standby"))
	until(t, ctx, `/^Your turn!/.test(document.title) && notes.length === 1`)
	until(t, ctx, `polls >= 3`) // half of three seconds each, not pollAfterMs
	js[bool](t, ctx, `(place = {status: "admitted"}, true)`)
	until(t, ctx, visible("admitted"))
	until(t, ctx, `/^Your turn!/.test(document.title) && notes.length === 2`)
	if n := js[int](t, ctx, `claims`); n != 0 {
		t.Errorf("%d claims while nobody looked", n)
	}
	js[bool](t, ctx, `(Object.defineProperty(document, "hidden", {configurable: true, get: () => false}), document.dispatchEvent(new Event("visibilitychange")))`)
	until(t, ctx, `claims > 0`)
}

// Before the doors open a join is refused: the page shows when they do and joins
// by itself. The fan pressed "join" in a page of before the room was put back.
func TestBrowserJoinsWhenTheRoomOpens(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall?left=1"))
	until(t, ctx, visible("left"))
	js[bool](t, ctx, `(window.real = fetch, window.fetch = async (url, init) => init.method === "GET" && window.shut
	    ? new Response(JSON.stringify({...await (await real(url, init)).json(), state: "scheduled", opensAt: shut}), {status: 200})
	    : window.shut ? new Response(JSON.stringify({type: "about:problems/room-not-open-yet", opensAt: shut}), {status: 409}) : real(url, init),
	  window.shut = new Date(Date.now() + 2000).toISOString(), true)`)
	js[bool](t, ctx, click(`[data-for="left"] button`))
	until(t, ctx, visible("scheduled"))
	until(t, ctx, `document.querySelector(".joins").offsetParent && document.querySelector(".joins").textContent !== ""`)
	js[bool](t, ctx, `(window.shut = "", true)`)
	until(t, ctx, visible("waiting")+" && "+place+` === "1"`)
}
