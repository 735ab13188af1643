package queuehttp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"usher/queue"
)

const place = `document.getElementById("place").textContent`

func visible(state string) string {
	return `document.getElementById("room") && document.getElementById("room").dataset.state === "` + state + `"`
}

func click(selector string) string {
	return `document.querySelector('` + selector + `').click() === undefined`
}

// tab opens another tab of the same browser.
func tab(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	other, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	do(t, other, chromedp.Navigate("about:blank"))
	return other
}

// stayOut makes the page believe that nobody looks, so that it does not enter by itself.
func stayOut(t *testing.T, ctx context.Context) {
	t.Helper()
	js[bool](t, ctx, `(Object.defineProperty(document, "hidden", {configurable: true, get: () => true}), document.dispatchEvent(new Event("visibilitychange")))`)
}

func TestQ7_BrowserKeepsThePlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(41)
	ctx := browser(t)
	complaints(t, ctx)
	page := h.base + "/rooms/hall"
	do(t, ctx, chromedp.Navigate(page))
	until(t, ctx, visible("waiting")+" && "+place+` === "42"`) // joined by script
	if got := js[string](t, ctx, `document.title`); got != "#42 · The Hall" {
		t.Errorf("title %q", got)
	}
	if got := js[string](t, ctx, `document.getElementById("left").textContent`); got != "412 of 850 seats" {
		t.Errorf("left on sale: %q", got)
	}
	for range 5 {
		do(t, ctx, chromedp.Reload())
		until(t, ctx, visible("waiting")+" && "+place+` === "42"`)
	}
	second := tab(t, ctx)
	do(t, second, chromedp.Navigate(page))
	until(t, second, visible("waiting")+" && "+place+` === "42"`)
	do(t, ctx, chromedp.Navigate(h.base+"/"), chromedp.NavigateBack())
	until(t, ctx, visible("waiting")+" && "+place+` === "42"`)
	if room, err := h.line.Room(h.room); err != nil || room.Waiting != 42 {
		t.Errorf("waiting %d (%v), want 42", room.Waiting, err)
	}
	screenshot(t, ctx, "walk-waiting")
}

// A visible page takes the called fan in; the pass is posted, bound, and in no address.
func TestBrowserIsTakenInWhenCalled(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("waiting"))
	h.set("open", 6000, 5)
	until(t, ctx, visible("called"))
	if got := js[string](t, ctx, `document.title`); got != "Your turn! · The Hall" {
		t.Errorf("title %q", got)
	}
	if got := js[string](t, ctx, `document.getElementById("say").textContent`); got == "" {
		t.Error("nothing is said to a screen reader")
	}
	until(t, ctx, `document.title === "Box office"`)
	if got := js[string](t, ctx, `location.href`); got != h.booking.URL+"/enter" {
		t.Errorf("went to %s", got)
	}
	visits := h.visits()
	if len(visits) != 1 || visits[0].Get("pass") == "" || visits[0].Get("binding") == "" {
		t.Fatalf("the box office got %v", visits)
	}
	// Back does not throw the fan forward again.
	do(t, ctx, chromedp.NavigateBack())
	until(t, ctx, visible("admitted"))
	if n := len(h.visits()); n != 1 {
		t.Errorf("going back entered again: %d visits", n)
	}
	js[bool](t, ctx, click(`[data-for="admitted"] button`))
	until(t, ctx, `document.title === "Box office"`)
	if visits = h.visits(); len(visits) != 2 || visits[1].Get("pass") != visits[0].Get("pass") {
		t.Errorf("entering again: %d visits", len(visits))
	}
}

// A hidden tab is not taken in; it says so in its title, and is right at once
// when somebody looks at it.
func TestQ16_HiddenTabWaitsAndIsRightOnReturn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("waiting"))
	hide := func(hidden string) {
		js[bool](t, ctx, `(Object.defineProperty(document, "hidden", {configurable: true, get: () => `+hidden+`}), document.dispatchEvent(new Event("visibilitychange")))`)
	}
	hide("true")
	js[bool](t, ctx, `(window.asked = 0, window.real = fetch, window.fetch = (...a) => (asked++, real(...a)), true)`)
	h.set("open", 6000, 5)
	deadline := time.Now().Add(10 * time.Second)
	for room, _ := h.line.Room(h.room); room.Called == 0; room, _ = h.line.Room(h.room) {
		if time.Now().After(deadline) {
			t.Fatal("nobody was called")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n := js[int](t, ctx, `asked`); n != 0 {
		t.Errorf("a hidden tab asked %d times within seconds; half a claim window is a minute", n)
	}
	hide("false")
	until(t, ctx, visible("called"))
	until(t, ctx, `document.title === "Box office"`)
}

func TestBrowserLeavesAndComesBackAtTheEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("waiting")+" && "+place+` === "1"`)
	h.fill(2)
	js[bool](t, ctx, `(document.getElementById("leaving").open = true)`)
	js[bool](t, ctx, click(`#leave button`))
	until(t, ctx, visible("left"))
	do(t, ctx, chromedp.Reload())
	until(t, ctx, visible("left")) // a reload does not join by itself
	js[bool](t, ctx, click(`[data-for="left"] button`))
	until(t, ctx, visible("waiting")+" && "+place+` === "3"`)
}

func TestBrowserSaysPausedAndClosed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("waiting"))
	h.set("paused", 60, 5)
	until(t, ctx, `!document.querySelector('[data-banner="paused"]').hidden && /paused/.test(document.getElementById("say").textContent)`)
	h.set("open", 0, 5)
	until(t, ctx, `document.querySelector('[data-banner="paused"]').hidden`)
	h.set("closed", 0, 5)
	until(t, ctx, visible("closed"))
}

// The whole way with script switched off: forms and meta refresh only.
func TestBrowserWithoutScript(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(1)
	ctx := browser(t)
	complaints(t, ctx)
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("join"))
	do(t, ctx, chromedp.Click(`[data-for="join"] button`))
	until(t, ctx, visible("waiting")+" && "+place+` === "2"`)
	h.set("open", 6000, 5)
	until(t, ctx, visible("called")) // by refresh
	do(t, ctx, chromedp.Click(`#enter button`))
	until(t, ctx, `document.querySelector("input[name=pass]")`)
	do(t, ctx, chromedp.Click(`form[action$="/enter"] button`))
	until(t, ctx, `document.title === "Box office"`)
	if visits := h.visits(); len(visits) != 1 || visits[0].Get("binding") == "" {
		t.Errorf("the box office got %v", visits)
	}
}

// A browser that keeps no cookies keeps its place in the tab, by the token itself.
func TestBrowserThatKeepsNoCookies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	target, err := url.Parse(h.base)
	if err != nil {
		t.Fatal(err)
	}
	forgetful := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Header.Del("Cookie") },
		ModifyResponse: func(r *http.Response) error { r.Header.Del("Set-Cookie"); return nil },
	})
	t.Cleanup(forgetful.Close)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(forgetful.URL+"/rooms/hall"))
	until(t, ctx, visible("waiting")+" && "+place+` === "1"`)
	until(t, ctx, `!document.querySelector('[data-banner="cookies"]').hidden`) // the first poll found out
	until(t, ctx, `document.getElementById("code").offsetParent && document.getElementById("code").textContent.length === 11`)
	until(t, ctx, `document.getElementById("code-qr").naturalWidth > 0`)
	dress(t, ctx, "light", 390, 844, 2)
	fits(t, ctx, "kept code in the page")
	screenshot(t, ctx, "device-kept-phone")
	h.set("open", 6000, 5)
	until(t, ctx, `document.title === "Box office"`)
	if visits := h.visits(); len(visits) != 1 || visits[0].Get("pass") == "" {
		t.Errorf("the box office got %v", visits)
	}
	var room queue.RoomView
	for deadline := time.Now().Add(10 * time.Second); room.Admitted == 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if room, err = h.line.Room(h.room); err != nil { // of its last board
			t.Fatal(err)
		}
	}
	if room.Admitted != 1 {
		t.Errorf("admitted %d: the page made more than one place", room.Admitted)
	}
}

// Keys alone lead through the page in the order it is read, with a visible mark.
func TestKeyboardOrder(t *testing.T) {
	t.Parallel()
	base := gallery(t)
	ctx := browser(t)
	dress(t, ctx, "light", 390, 844, 1)
	do(t, ctx, chromedp.Navigate(base+"/rooms/called"))
	until(t, ctx, visible("called"))
	stayOut(t, ctx)
	for _, want := range []string{"Skip to the content", "Usher", "en English", "pt Português", "es Español", "Enter the box office", "Continue on another device", "Leave the line"} {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		if got := js[string](t, ctx, `document.activeElement.textContent.trim()`); got != want {
			t.Errorf("focus is on %q, want %q", got, want)
		}
		if style := js[string](t, ctx, `getComputedStyle(document.activeElement).outlineStyle`); style == "none" {
			t.Errorf("%q shows no focus", want)
		}
	}
}

// Called, but no slot in this very second: the page says so and keeps trying.
func TestBrowserStandsBy(t *testing.T) {
	t.Parallel()
	base := gallery(t)
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(base+"/rooms/called"))
	until(t, ctx, visible("called"))
	js[bool](t, ctx, click(`#enter button`))
	until(t, ctx, visible("standby"))
	if said := js[string](t, ctx, `document.getElementById("say").textContent`); said != "You are at the door. The next free spot is yours." {
		t.Errorf("said %q", said)
	}
}

// An outage keeps the last number on screen and ends by itself.
func TestBrowserOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	h := newHouseWith(t, 0, 5, func(o *Options) { o.Streams = 0 }) // one would go on: what fails here is asking
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, ctx, visible("waiting")+" && "+place+` === "1"`)
	trouble := `document.querySelector('[data-banner="trouble"]').hidden`
	js[bool](t, ctx, `(window.real = fetch, window.fetch = () => Promise.reject(new TypeError("gone")), true)`)
	until(t, ctx, "!"+trouble)
	if got := js[string](t, ctx, place); got != "1" {
		t.Errorf("the number became %q", got)
	}
	js[bool](t, ctx, `(window.fetch = real, true)`)
	until(t, ctx, trouble)
}
