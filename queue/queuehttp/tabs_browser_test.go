package queuehttp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// asked is how often the page has asked for its place.
const asked = `performance.getEntriesByType("resource").filter((e) => e.name.replace(/[?].*/, "").endsWith("/place")).length`

// another opens another tab of the same browser at the room.
func another(t *testing.T, ctx context.Context, h *house) context.Context {
	t.Helper()
	next, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	do(t, next, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, next, visible("waiting"))
	return next
}

// holder waits until this very tab asks for all.
func holder(t *testing.T, ctx context.Context) {
	t.Helper()
	until(t, ctx, `(navigator.locks.query().then((all) => navigator.locks.request("me" + Math.random(), () => navigator.locks.query().then((now) => {
	  const of = (q, name) => (q.held.find((l) => l.name.startsWith(name)) || {}).clientId;
	  window.holds = of(all, "usher:") !== undefined && of(all, "usher:") === of(now, "me");
	}))), window.holds)`)
}

// Three tabs show one place, and one of them asks for it: the one that was looked at
// last. When it closes, another goes on.
func TestQ7_TabsAgreeAndOneAsks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(3)
	one := browser(t)
	complaints(t, one)
	do(t, one, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, one, visible("waiting")+" && "+place+` === "4"`)
	holder(t, one)
	two := another(t, one, h)
	holder(t, two)
	three, closeThree := chromedp.NewContext(one)
	defer closeThree()
	do(t, three, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, three, visible("waiting")+" && "+place+` === "4"`)
	holder(t, three)
	before := [2]int{js[int](t, one, asked), js[int](t, two, asked)}

	paused := `document.querySelector('[data-banner="paused"]').offsetParent`
	for range 3 {
		h.set("paused", 0, 5)
		for _, c := range []context.Context{one, two, three} {
			until(t, c, paused)
		}
		h.set("open", 0, 5)
		for _, c := range []context.Context{one, two, three} {
			until(t, c, "!"+paused)
		}
	}
	if after := [2]int{js[int](t, one, asked), js[int](t, two, asked)}; after != before {
		t.Errorf("tabs that only listen asked %v times, before %v", after, before)
	}

	closeThree()
	h.set("paused", 0, 5)
	until(t, one, paused)
	until(t, two, paused)
	h.set("open", 0, 5)
	until(t, one, "!"+paused)

	// Whoever leaves in one tab has left in all: none joins again by itself.
	js[bool](t, one, `(document.getElementById("leaving").open = true)`)
	js[bool](t, one, click(`#leave button`))
	until(t, one, visible("left"))
	until(t, two, visible("left"))
	if v, err := h.line.Look(t.Context(), "hall"); err != nil || v.Waiting != 3 {
		t.Errorf("%d wait (%v), want the three others", v.Waiting, err)
	}
}

// Near the head the page is told by its stream: what happens shows without a question.
func TestBrowserIsToldByItsStream(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(3)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("waiting")+" && "+place+` === "4"`)
	for deadline := time.Now().Add(20 * time.Second); h.server.streams.hub.Len() != 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no stream was opened")
		}
	}
	before := js[int](t, ctx, asked)
	for _, state := range []string{"paused", "open", "paused", "open"} {
		h.set(state, 0, 5)
		until(t, ctx, `!document.querySelector('[data-banner="paused"]').hidden === `+map[string]string{"paused": "true", "open": "false"}[state])
	}
	if n := js[int](t, ctx, asked) - before; n > 1 { // one may have been under way
		t.Errorf("%d polls beside a stream", n)
	}
	h.set("open", 6000, 5)
	until(t, ctx, `document.title === "Box office"`)
	if visits := h.visits(); len(visits) != 1 || !strings.Contains(visits[0].Get("pass"), ".") {
		t.Errorf("the box office got %v", visits)
	}
}
