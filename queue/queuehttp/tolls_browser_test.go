package queuehttp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"usher/queue/proof"
)

// The page pays by itself, in workers that its own policy allows.
func TestQ20_ABrowserPaysByItself(t *testing.T) {
	t.Parallel()
	price := proof.Price{Base: 50_000, Most: 50_000, Wait: time.Hour, Long: time.Hour} // waiting would never end
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Proof: ProofAlways, Price: price})
	ctx := browser(t)
	complaints(t, ctx) // of the policy, above all
	do(t, ctx, chromedp.Navigate(e.base+"/rooms/cinema"))
	until(t, ctx, visible("waiting")+" && "+place+` === "1"`)
	// Another one beside it: the page's own thread goes on meanwhile.
	js[bool](t, ctx, `(window.ticks = 0, setInterval(() => ticks++, 4), window.done = "", fetch("/v1/rooms/cinema/challenge").then((r) => r.json()).
		then((c) => usherProof.solve({...c, challenge: "0".repeat(64), maxnumber: 300000}, {progress: (p) => window.part = p})).
		catch((e) => window.done = String(e)), true)`)
	until(t, ctx, `done !== ""`)
	if got := js[string](t, ctx, `done`); !strings.Contains(got, "no number") {
		t.Errorf("a challenge without an answer: %s", got)
	}
	if ticks, part := js[int](t, ctx, `ticks`), js[float64](t, ctx, `part`); ticks < 3 || part <= 0 || part > 1 {
		t.Errorf("%d ticks, told %v of the way", ticks, part)
	}
}

// beforeAnything runs a script in each page before its own.
func beforeAnything(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		t.Fatal(err)
	}
}

// A browser without workers still pays, and one that cannot at all waits.
func TestABrowserWithoutWorkersPaysOrWaits(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Proof: ProofAlways, Price: proof.Price{Base: 2000, Most: 2000, Wait: time.Second, Long: time.Second}})
	for name, broken := range map[string]string{"no workers": `window.Worker = undefined`, "no solver": `Object.defineProperty(window, "usherProof", {value: {solve: () => Promise.reject(new Error("no"))}})`} {
		ctx := browser(t)
		beforeAnything(t, ctx, broken)
		do(t, ctx, chromedp.Navigate(e.base+"/rooms/cinema"))
		until(t, ctx, visible("waiting"))
		if name == "no workers" && js[bool](t, ctx, `!!window.Worker`) {
			t.Error("the worker was there")
		}
	}
}
