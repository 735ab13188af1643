package queuehttp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/internal/pagehttp"
	"usher/queue"
)

// The gallery shows the page in every state without a line behind it, for what
// can only be judged on screen: overflow, contrast, targets, and by eye. With
// USHER_SCREENS=DIR it leaves pictures there.

type exhibit struct {
	name   string
	room   func(*roomDoc)
	place  func(*placeDoc) // nil: no place yet
	joined int             // position when the fan joined, as the browser remembers it
	query  string
	broken bool // the API fails: what the script shows then
}

func intp(n int) *int { return &n }

func exhibits() []exhibit {
	waiting := func(pos, low, high int) func(*placeDoc) {
		return func(d *placeDoc) {
			d.Status, d.Position, d.Ahead, d.PollAfterMs = queue.Waiting, pos, pos-1, 60000
			if high > 0 {
				d.ETA = &etaDoc{LowSeconds: low, HighSeconds: high}
			}
		}
	}
	status := func(s queue.Status) func(*placeDoc) {
		return func(d *placeDoc) { d.Status, d.PollAfterMs = s, 60000 }
	}
	return []exhibit{
		{name: "far", place: waiting(12840, 2700, 3900), joined: 15600},
		{name: "million", place: waiting(1204567, 14000, 19000), joined: 1204567},
		{name: "near", place: waiting(4, 20, 55), joined: 312},
		{name: "next", place: waiting(1, 0, 0), joined: 87},
		{name: "called", place: func(d *placeDoc) {
			d.Status, d.PollAfterMs, d.CalledUntil = queue.Called, 60000, stamp(time.Now().Add(100*time.Second))
		}},
		{name: "standby", place: func(d *placeDoc) { d.Status, d.PollAfterMs, d.StandingBy = queue.Called, 60000, true }},
		{name: "paused", place: waiting(214, 0, 0), joined: 640, room: func(r *roomDoc) { r.State = "paused" }},
		{name: "soldout", place: waiting(58, 300, 540), joined: 640, room: func(r *roomDoc) {
			r.Inventory = inventoryDoc{Available: intp(0), Total: intp(850), SoldOut: true}
		}},
		{name: "stale", place: waiting(58, 300, 540), joined: 640, room: func(r *roomDoc) { r.Stale = true; r.Inventory = inventoryDoc{} }},
		{name: "offline", place: waiting(58, 300, 540), joined: 640, broken: true},
		{name: "expired", place: status(queue.Expired)},
		{name: "admitted", place: status(queue.Admitted)},
		{name: "left", query: "?left=1"},
		{name: "moved", place: func(d *placeDoc) { d.Status, d.Moved = queue.Left, true }},
		{name: "gathering", place: waiting(0, 0, 0), room: drawRoom("gathering")},
		{name: "drawing", place: waiting(0, 0, 0), room: drawRoom("drawing")},
		{name: "drawn", place: waiting(7311, 1500, 2400), joined: 7311, room: drawRoom("open")},
		{name: "draw-scheduled", room: drawRoom("scheduled")},
		{name: "placing", place: waiting(0, 0, 0), room: func(r *roomDoc) { r.Recovering = true }},
		{name: "recovering", place: waiting(58, 0, 0), joined: 640, room: func(r *roomDoc) { r.Recovering = true }},
		{name: "revoked", place: func(d *placeDoc) { d.Status, d.Revoked = queue.Expired, true }},
		{name: "invited", place: func(d *placeDoc) { waiting(3, 20, 55)(d); d.Line = "invited" }, joined: 9},
		{name: "priority", place: func(d *placeDoc) { waiting(12, 90, 400)(d); d.Line = "priority" }, joined: 30},
		{name: "closed", room: func(r *roomDoc) { r.State = "closed" }},
		{name: "scheduled", room: func(r *roomDoc) {
			r.State = "scheduled"
			at := "2026-12-05T20:30:00.000Z"
			r.OpensAt = &at
		}},
	}
}

// drawRoom is a room that is drawn, in a state.
func drawRoom(state string) func(*roomDoc) {
	return func(r *roomDoc) {
		gathers, opens := "2026-12-04T17:00:00.000Z", "2026-12-05T20:30:00.000Z"
		r.Mode, r.State, r.GathersAt, r.OpensAt, r.Draw = "draw", state, &gathers, &opens, &drawDoc{}
	}
}

// gallery serves the exhibits at /rooms/{name}.
func gallery(t *testing.T) (base string) {
	t.Helper()
	p, err := newPages(&Server{})
	if err != nil {
		t.Fatal(err)
	}
	kit := p.kit
	app := fiber.New(fiber.Config{DisableStartupMessage: true, ErrorHandler: basehttp.ErrorHandler(nil)})
	kit.Register(app)
	byName := map[string]exhibit{}
	for _, e := range exhibits() {
		byName[e.name] = e
	}
	app.Get("/", func(c *fiber.Ctx) error {
		return kit.Render(c, pagehttp.View{Page: "index", Data: []queue.RoomView{
			{Room: "cinema", Title: "Northern Lights, Harbour Bowl", State: "open", Waiting: 12840},
			{Room: "stadium", Title: "Cup final", State: "paused", Waiting: 1},
			{Room: "last-seats", Title: "Last seats", State: "scheduled"},
			{Room: "passthrough", Title: "Matinée", State: "open", Mode: "passthrough"},
			{Room: "over", Title: "Yesterday’s show", State: "closed"},
		}})
	})
	app.Get("/enter", func(c *fiber.Ctx) error {
		return kit.Render(c, pagehttp.View{Page: "enter", Data: struct {
			passDoc
			Action, Room string
		}{passDoc{Pass: "pass", Binding: "binding"}, "http://booking.test/enter", "/"}})
	})
	app.Get("/rooms/:room", func(c *fiber.Ctx) error {
		e, ok := byName[c.Params("room")]
		if !ok {
			return kit.Render(c, pagehttp.View{Status: 404, Page: "unknown"})
		}
		info, doc := e.docs()
		if e.joined > 0 {
			c.Request().Header.SetCookie(shownCookie(e.name), fmt.Sprintf("%s.%d.%d", shownKey(doc.Token), e.joined, doc.Position))
		}
		v := p.waitView(c, e.name, info, doc, "")
		return kit.Render(c, pagehttp.View{Page: "room", Data: v.finish(kit.Text(c))})
	})
	app.All("/v1/rooms/:room/*", func(c *fiber.Ctx) error {
		e := byName[c.Params("room")]
		info, doc := e.docs()
		switch {
		case e.broken:
			return basehttp.ErrUnavailable
		case c.Params("*") == "pass":
			return errStandBy.After(time.Minute)
		case doc == nil:
			return c.JSON(info)
		}
		return c.JSON(doc)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own listener
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(ln) }()
	t.Cleanup(func() { _ = app.Shutdown() })
	return "http://" + ln.Addr().String()
}

func (e exhibit) docs() (roomDoc, *placeDoc) {
	info := roomDoc{
		Room: e.name, Title: "Northern Lights, Harbour Bowl", State: "open", Mode: "fifo", Waiting: 15212, RatePerMinute: 240,
		ClaimSeconds: 120, Inventory: inventoryDoc{Available: intp(3412), Total: intp(20250)},
	}
	if e.room != nil {
		e.room(&info)
	}
	if e.place == nil {
		return info, nil
	}
	doc := &placeDoc{PlaceID: "00112233445566778899aabbccddeeff", Token: "not-a-real-token", Room: info, Waiting: info.Waiting}
	e.place(doc)
	return info, doc
}

// overflow lists what sticks out to the right of the window.
const overflow = `(() => {
  const w = document.documentElement.clientWidth, out = [];
  if (document.documentElement.scrollWidth > w) out.push("page is " + document.documentElement.scrollWidth + " wide");
  for (const el of document.querySelectorAll("main *, header *")) {
    if (el.closest(".sr, [hidden]")) continue;
    const r = el.getBoundingClientRect();
    if (r.width && (r.right > w + 1 || r.left < -1)) out.push(el.tagName + "." + el.className + " " + Math.round(r.right) + ">" + w);
  }
  return out.join("; ");
})()`

// overflowAtDoubleText is the same with twice the letters, for those who set them so.
const overflowAtDoubleText = `(() => {
  document.documentElement.style.fontSize = "200%";
  const w = document.documentElement.clientWidth, is = document.documentElement.scrollWidth;
  document.documentElement.style.fontSize = "";
  return is > w ? "page is " + is + " wide" : "";
})()`

// wordsDrift compares what the server wrote with what the script made of it: the
// two put the same numbers into the same messages and must not disagree.
const wordsDrift = `(async () => {
  const was = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
  const out = [];
  if (was.title !== document.title) out.push(was.title + " / " + document.title);
  for (const id of ["place", "note", "from", "wait", "left", "line", "called"]) {
    const a = was.getElementById(id), b = document.getElementById(id);
    if (a && b && a.textContent !== b.textContent) out.push(id + ": " + a.textContent + " / " + b.textContent);
    if (a && b && a.dataset.len !== b.dataset.len) out.push(id + " " + a.dataset.len + " / " + b.dataset.len);
  }
  for (const id of ["way"]) if (was.getElementById(id) && was.getElementById(id).getAttribute("value") != document.getElementById(id).value) out.push(id);
  return out.join("; ");
})()`

// dim lists text under the contrast of WCAG AA. Gradients (the ticket) count by
// the custom property they are made of.
const dim = `(() => {
  const rgb = (s) => { const d = document.createElement("canvas").getContext("2d", {willReadFrequently: true}); d.fillStyle = s; d.fillRect(0, 0, 1, 1); return [...d.getImageData(0, 0, 1, 1).data]; };
  const lum = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const behind = (el) => {
    for (; el; el = el.parentElement) {
      const cs = getComputedStyle(el);
      if (cs.backgroundColor !== "rgba(0, 0, 0, 0)" && rgb(cs.backgroundColor)[3] === 255) return rgb(cs.backgroundColor);
      if (el.matches(".ticket-main, .ticket-stub")) return rgb(cs.getPropertyValue("--tk"));
    }
    return [255, 255, 255, 255];
  };
  const out = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const el = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || el.closest(".sr, .skip, [hidden], script, noscript, details:not([open]) > :not(summary)")) continue;
    const a = lum(rgb(getComputedStyle(el).color)), b = lum(behind(el));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) out.push(walk.currentNode.data.trim().slice(0, 30) + " " + ratio.toFixed(2));
  }
  return out.join("; ");
})()`

// small lists targets under 24 × 24 px (WCAG 2.2, 2.5.8).
const small = `[...document.querySelectorAll("a, button, summary, input:not([type=hidden])")].filter((el) => {
  const r = el.getBoundingClientRect();
  return r.width && !el.closest(".sr, .skip, [hidden]") && (r.width < 24 || r.height < 24);
}).map((el) => el.outerHTML.slice(0, 80)).join("; ")`

// galleryPaths are the exhibits and the pages without a place, by name.
func galleryPaths() map[string]string {
	paths := map[string]string{"index": "/", "enter": "/enter", "unknown": "/rooms/none"}
	for _, e := range exhibits() {
		paths[e.name] = "/rooms/" + e.name + e.query
	}
	return paths
}

func TestEveryStateFitsAndReads(t *testing.T) {
	t.Parallel()
	base := gallery(t)
	ctx := browser(t)
	for _, lang := range pagehttp.Langs {
		for name, path := range galleryPaths() {
			t.Run(lang.Code+"/"+name, func(t *testing.T) { see(t, ctx, base, path, name, lang.Code) }) // one browser: not parallel
		}
	}
}

// see looks at one page in both themes at 320 px, which is also 1280 px at 400 %.
func see(t *testing.T, ctx context.Context, base, path, name, lang string) {
	t.Helper()
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	dress(t, ctx, "light", 320, 640, 1)
	do(t, ctx, chromedp.Navigate(base+path+join+"lang="+lang))
	if name == "offline" {
		js[bool](t, ctx, `dispatchEvent(new Event("online"))`) // the page asks, and fails
		until(t, ctx, `!document.querySelector('[data-banner="trouble"]').hidden`)
	}
	if got := js[string](t, ctx, overflowAtDoubleText); got != "" {
		t.Errorf("%s %s: text at 200 %%: %s", name, lang, got)
	}
	if drift, err := chromedp.Run(ctx, chromedp.Evaluate[string](wordsDrift, chromedp.EvalAwaitPromise)); err != nil || drift != "" {
		t.Errorf("%s %s: the script words it otherwise than the server: %s (%v)", name, lang, drift, err)
	}
	larger(t, ctx, name+" "+lang)
	for _, theme := range []string{"light", "dark"} {
		dress(t, ctx, theme, 320, 640, 1)
		for what, script := range map[string]string{"overflow": overflow, "low contrast": dim, "small targets": small} {
			if got := js[string](t, ctx, script); got != "" {
				t.Errorf("%s %s %s: %s: %s", name, lang, theme, what, got)
			}
		}
		dress(t, ctx, theme, 390, 844, 2)
		screenshot(t, ctx, fmt.Sprintf("waiting-%s-%s-phone-%s", name, lang, theme))
		dress(t, ctx, theme, 1280, 800, 1)
		if got := js[string](t, ctx, overflow); got != "" {
			t.Errorf("%s %s desktop: %s", name, lang, got)
		}
		screenshot(t, ctx, fmt.Sprintf("waiting-%s-%s-desktop-%s", name, lang, theme))
	}
}
