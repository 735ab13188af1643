package queuehttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"usher/queue"
)

// laterClock lets the scripts' clock run ahead: it puts a second clock into their text
// on the way to Redis. Nobody sleeps ten minutes.
type laterClock struct{}

func (laterClock) change(cmd redis.Cmder) {
	const reads, key = "tonumber(t[1]) * 1000000", "test:ahead" // a key that no room has
	args := cmd.Args()
	switch args[0] {
	case "eval":
		text, _ := args[1].(string)
		args[1] = strings.Replace(text, reads, "(tonumber(t[1]) + tonumber(redis.call('GET', '"+key+"') or '0')) * 1000000", 1)
	case "evalsha":
		args[1] = strings.Repeat("0", 40) // not known: the text is sent, every time
	}
}

func (laterClock) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l laterClock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { l.change(cmd); return next(ctx, cmd) }
}

func (l laterClock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			l.change(cmd)
		}
		return next(ctx, cmds)
	}
}

// ahead turns the clock of an edge's Redis.
func (e *edge) ahead(t *testing.T, by time.Duration) {
	t.Helper()
	if err := e.rdb.Set(t.Context(), "test:ahead", int(by.Seconds()), 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// A tab that was closed, or a phone that slept, for ten minutes by the line's clock,
// while others joined, left, and were let in: nobody asks for the place meanwhile, and
// it is there, one further ahead for each who is gone.
func TestQ7_TenMinutesAwayAreNothing(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10, func(o *queue.Options) {
		o.ReportTTL, o.BoardEvery = 2*time.Hour, 50*time.Millisecond
	})
	e.rdb.AddHook(laterClock{})
	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("waited in vain for: %s", what)
			}
		}
	}
	before := []fan{e.browser(t), e.browser(t), e.browser(t)}
	for _, b := range before {
		b.join()
	}
	f := e.browser(t)
	first := f.join()
	if first.num("position") != 4 {
		t.Fatalf("%s", first.body)
	}
	near, behind := e.browser(t), e.browser(t)
	behind.join()
	for away, gone := range []int{0, 1, 2} {
		e.ahead(t, time.Duration(away+1)*10*time.Minute)
		if gone > 0 {
			before[gone].send("DELETE", "/v1/rooms/cinema/place", "")
		}
		e.browser(t).join() // and somebody new
		want := 4 - gone
		until(fmt.Sprint("position ", want), func() bool {
			a := f.send("GET", "/v1/rooms/cinema/place", "")
			if a.status != 200 || a.text("placeId") != first.text("placeId") || a.text("status") != "waiting" {
				t.Fatalf("after %d × ten minutes: %d %s", away+1, a.status, a.body)
			}
			return a.num("position") == want
		})
		if a := f.join(); a.status != 200 || a.num("position") != want || a.text("placeId") != first.text("placeId") {
			t.Errorf("the page joins again: %d %s", a.status, a.body)
		}
		if page := f.send("GET", "/rooms/cinema", ""); page.status != 200 || !strings.Contains(string(page.body), `data-state="waiting"`) {
			t.Errorf("the page: %d", page.status)
		}
	}
	for _, name := range []string{"usher_fan", "usher_place_cinema"} {
		for _, c := range (&http.Response{Header: e.browser(t).join().header}).Cookies() {
			if c.Name == name && c.MaxAge < int((24*time.Hour).Seconds()) {
				t.Errorf("the cookie %s lives %d s", name, c.MaxAge)
			}
		}
	}

	// Called while away, and the window is over when the fan is back: joining, which the
	// page does by itself, finds the same place.
	near.join()
	e.settings(t, "cinema", 2, 60_000, 10, "open")
	until("a call", func() bool { return f.send("GET", "/v1/rooms/cinema/place", "").text("status") == "called" })
	e.ahead(t, 50*time.Minute)
	until("the window is over", func() bool { return f.send("GET", "/v1/rooms/cinema/place", "").text("status") == "expired" })
	e.settings(t, "cinema", 3, 0, 10, "open") // nobody is called while we look
	if a := f.join(); a.status != 200 || a.text("placeId") != first.text("placeId") || a.num("position") != 1 {
		t.Errorf("back after a missed call: %d %s", a.status, a.body)
	}
}

// A phone that sleeps freezes the page, with its timers, and wakes it; a tab that is
// closed comes back as another one. The number is the same.
func TestQ7_APhoneSleepsAndATabIsClosed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(6)
	keep := browser(t) // the browser lives on with this tab
	ctx, shut := chromedp.NewContext(keep)
	defer shut()
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("waiting")+" && "+place+` === "7"`)
	for _, state := range []page.SetWebLifecycleStateState{page.SetWebLifecycleStateStateFrozen, page.SetWebLifecycleStateStateActive} {
		if _, err := chromedp.Call(ctx, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state}); err != nil {
			t.Fatal(err)
		}
		h.fill(20) // the same six, and more behind
	}
	js[bool](t, ctx, `dispatchEvent(new Event("online")) || true`) // it asks at once
	until(t, ctx, visible("waiting")+" && "+place+` === "7"`)
	shut()
	again := tab(t, keep)
	do(t, again, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, again, visible("waiting")+" && "+place+` === "7"`)
	if room, err := h.line.Room(h.room); err != nil || room.Waiting != 21 {
		t.Errorf("%d wait (%v), want 21", room.Waiting, err)
	}
}

// Many polls over two edges, while others join, leave, miss their call, come back to
// where they were, and are invited past everybody, and while no-shows move the
// estimates: neither the number nor the low end of the wait that a fan is shown grows.
func TestQ8_OverHTTPNothingGrows(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", 32))
	e := newEdge(t, 30, 5000, func(o *queue.Options) {
		o.ClaimWindow, o.Tick, o.BoardEvery = 500*time.Millisecond, 20*time.Millisecond, 40*time.Millisecond
	})
	other := e.twin(t)
	_, invite := queue.NewInvite(secret, "cinema", queue.Bypass, 100, time.Now().Add(time.Hour))
	api := e.api(t)
	for i := range 500 { // all by the same way, so that some can be found again
		api.join("Idempotency-Key", fmt.Sprint("ahead-", i))
	}
	type watched struct {
		fan
		header        []string
		shown         string
		position, low int
	}
	var fans []*watched
	for _, w := range []*watched{{fan: e.browser(t)}, {fan: e.api(t)}} {
		a := w.join("Idempotency-Key", fmt.Sprint("watched-", len(fans)))
		if w.client.Jar == nil {
			w.header = bearer(a)
		}
		w.shown, w.position, w.low = a.text("shown"), a.num("position"), -1
		fans = append(fans, w)
	}
	polls, next := 0, 500
	var grew, grewLow, raw, rawLow int
	for deadline := time.Now().Add(60 * time.Second); polls < 300 || grew == 0 || grewLow == 0; polls++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d polls; without a memory the number grew %d times and the low end %d times", polls, grew, grewLow)
		}
		switch polls % 6 { // a night in the line
		case 0:
			next++
			api.join("Idempotency-Key", fmt.Sprint("behind-", next))
		case 1:
			a := api.join("Idempotency-Key", fmt.Sprint("ahead-", 100+polls/6))
			api.send("DELETE", "/v1/rooms/cinema/place", "", bearer(a)...)
		case 2: // who missed a call comes back
			api.join("Idempotency-Key", fmt.Sprint("ahead-", polls/6))
		case 4: // somebody called comes in, and fewer are taken for absent
			a := api.join("Idempotency-Key", fmt.Sprint("ahead-", polls/6+3))
			api.send("POST", "/v1/rooms/cinema/pass", "", bearer(a)...)
		case 3:
			if polls%30 == 3 {
				api.send("POST", "/v1/rooms/cinema/places", `{"invite":"`+invite+`"}`, "Content-Type", "application/json", "Idempotency-Key", fmt.Sprint("guest-", polls))
			}
		}
		for i, f := range fans {
			f.e = []*edge{e, other}[(polls+i)%2]
			a := f.send("GET", "/v1/rooms/cinema/place?shown="+f.shown, "", f.header...)
			if a.status != 200 || a.text("status") != "waiting" {
				t.Fatalf("poll %d: %d %s", polls, a.status, a.body)
			}
			if f.position > 0 && a.num("position") > f.position {
				t.Fatalf("poll %d: the number grew from %d to %d", polls, f.position, a.num("position"))
			}
			low := lowEnd(t, a)
			if f.low >= 0 && low > f.low {
				t.Fatalf("poll %d: the low end grew from %d to %d s", polls, f.low, low)
			}
			f.low = low
			f.position, f.shown = a.num("position"), a.text("shown")
			if i == 0 { // what would be told without a memory, and with one of the number alone
				b := f.send("GET", "/v1/rooms/cinema/place", "", f.header...)
				c := f.send("GET", fmt.Sprint("/v1/rooms/cinema/place?shown=", f.position), "", f.header...)
				position, low := b.num("position"), lowEnd(t, c)
				if raw > 0 && position > raw {
					grew++
				}
				if raw > 0 && low > rawLow {
					grewLow++
				}
				raw, rawLow = position, low
			}
		}
	}
	t.Logf("%d polls; without a memory the number grew %d times and the low end %d times", polls, grew, grewLow)
}

func lowEnd(t *testing.T, a answer) int {
	t.Helper()
	eta, ok := a.doc["eta"].(map[string]any)
	if !ok {
		t.Fatalf("no wait is told: %s", a.body)
	}
	low, _ := eta["lowSeconds"].(float64)
	return int(low)
}
