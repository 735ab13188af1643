package queuehttp

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// listening makes the page's clock the test's, answers its polls with window.at, and
// keeps what a screen reader is given to say.
const listening = `(() => {
  window.said = []; window.polls = 0; window.late = 0; window.at = 4000;
  const real = Date.now;
  Math.random = () => 0; // no need to spread one page's polls
  Date.now = () => real() + late;
  new MutationObserver(() => said.push(document.getElementById("say").textContent))
    .observe(document.getElementById("say"), {childList: true, characterData: true, subtree: true});
  window.fetch = async () => {
    polls++;
    return new Response(JSON.stringify({placeId: "p", token: "not-a-real-token", status: "waiting", position: at, ahead: at - 1, waiting: 9000, pollAfterMs: 600000,
      eta: {lowSeconds: at, highSeconds: at + 120},
      room: {room: "far", state: "open", mode: "fifo", waiting: 9000, claimSeconds: 120, inventory: {available: 1 + polls}}}), {status: 200});
  };
  return true;
})()`

// Twenty polls, ten seconds apart by the page's clock, and another number at each: a
// screen reader hears of them once a minute, and the number that ticks tells it nothing.
func TestAScreenReaderHearsFewAnnouncements(t *testing.T) {
	t.Parallel()
	base := gallery(t)
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(base+"/rooms/far?lang=en"))
	until(t, ctx, visible("waiting"))
	const live = `[aria-live], [role="status"], [role="alert"], [role="log"], [role="timer"], [role="marquee"], output`
	if n := js[int](t, ctx, "document.querySelectorAll('"+live+"').length"); n != 1 {
		t.Errorf("%d live regions, want one", n)
	}
	if got := js[string](t, ctx, `((e) => e.getAttribute("aria-live") + " " + e.getAttribute("role"))(document.getElementById("say"))`); got != "polite status" {
		t.Errorf("the live region is %q", got)
	}
	for _, id := range []string{"place", "note", "wait", "left", "line", "way", "fresh", "called", "clock"} {
		if js[bool](t, ctx, "!!document.getElementById('"+id+"').closest('"+live+"')") {
			t.Errorf("#%s is in a live region: it would be read at every poll", id)
		}
	}
	js[bool](t, ctx, listening)
	poll(t, ctx)
	before := js[int](t, ctx, `said.length`)
	for range 20 {
		js[bool](t, ctx, `(late += 10000, at -= 37, true)`)
		poll(t, ctx)
	}
	spoken := js[[]string](t, ctx, `said`)[before:]
	t.Logf("20 polls in 200 seconds: %d announcements\n%s", len(spoken), strings.Join(spoken, "\n"))
	if len(spoken) < 2 || len(spoken) > 4 {
		t.Errorf("%d announcements in 200 seconds, want one a minute", len(spoken))
	}
	// No news is none: the same answers again are not said again within the minute.
	js[bool](t, ctx, `(late += 61000, true)`)
	poll(t, ctx)
	before = js[int](t, ctx, `said.length`)
	for range 5 {
		js[bool](t, ctx, `(late += 61000, true)`)
		poll(t, ctx)
	}
	if again := js[[]string](t, ctx, `said`)[before:]; len(again) != 0 {
		t.Errorf("nothing changed, and it says %q", again)
	}
}

// poll has the page ask, and waits until it shows the answer.
func poll(t *testing.T, ctx context.Context) {
	t.Helper()
	js[bool](t, ctx, `(window.want = polls + 1, dispatchEvent(new Event("online")), true)`)
	until(t, ctx, `polls >= want && document.getElementById("place").textContent === new Intl.NumberFormat("en").format(at) &&
	  document.getElementById("left").textContent.startsWith(String(1 + polls))`)
}

// Whoever asks for less motion sees none; the same page moves for others, or the test
// would say nothing.
func TestReducedMotion(t *testing.T) {
	t.Parallel()
	base := gallery(t)
	ctx := browser(t)
	const running = `document.getAnimations().filter((a) => a.playState === "running").length`
	for _, motion := range []string{"no-preference", "reduce"} {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}}})
		if err != nil {
			t.Fatal(err)
		}
		moved := 0
		for _, state := range []string{"drawing", "called", "far", "standby"} {
			do(t, ctx, chromedp.Navigate(base+"/rooms/"+state))
			until(t, ctx, `document.readyState === "complete"`)
			// A new number and another skin are what moves, besides the dots.
			js[bool](t, ctx, `(document.getElementById("way").value = 90, document.getElementById("ticket").classList.toggle("lit"), getComputedStyle(document.body).color !== "")`)
			n := js[int](t, ctx, running)
			moved += n
			if motion == "reduce" && n > 0 {
				t.Errorf("%s: %d animations run although less motion is wanted", state, n)
			}
		}
		if motion == "no-preference" && moved == 0 {
			t.Error("nothing moves at all: this test would never fail")
		}
	}
}

// larger looks at the page in a window of 1280 px at 200 %, which is 640 wide, and in one
// of 640, which is 320: with everything folded out, nothing scrolls sideways.
func larger(t *testing.T, ctx context.Context, page string) {
	t.Helper()
	fold := `(document.querySelectorAll("details").forEach((d) => { d.open = !d.open; }), true)`
	js[bool](t, ctx, fold)
	for _, width := range []int64{640, 320} {
		dress(t, ctx, "light", width, 400, 2)
		if got := js[string](t, ctx, overflow); got != "" {
			t.Errorf("%s at %d px: %s", page, width, got)
		}
	}
	js[bool](t, ctx, fold)
}
