package queuehttp

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/queue"
	"usher/queue/limits"
)

// Parts of the list are megabytes: an address gets so many a minute and is told when to
// go on, which the page that checks a draw does by itself.
func TestPartsOfTheDrawsListAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1, func(o *queue.Options) {
		o.Guesses = func(what string) limits.Rate {
			if what == "entries" {
				return limits.Rate{PerMinute: 20, Burst: 3}
			}
			return limits.Rate{PerMinute: 60, Burst: 60}
		}
	})
	d := gather(t, e.line, "arena")
	d.State = "gathering"
	d.ship(t)
	d.crowd(t, 5)
	res := d.drawn(t)
	list := e.base + "/v1/rooms/arena/draw/entries"
	status, header, body := fetch(t, list)
	if status != 200 {
		t.Fatalf("the first part: %d %s", status, body)
	}
	for i := 0; status == 200 && i < 100; i++ {
		status, header, body = fetch(t, list)
	}
	if after, err := strconv.Atoi(header.Get("Retry-After")); status != 429 || err != nil || after < 1 || after > 5 {
		t.Fatalf("many more: %d, again after %q: %s", status, header.Get("Retry-After"), body)
	}
	if status, _, _ := fetch(t, e.base+"/v1/rooms/arena/draw"); status != 200 {
		t.Errorf("the draw itself: %d", status)
	}
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(e.base+"/rooms/arena/draw"))
	until(t, ctx, `document.getElementById("check") && !document.getElementById("check").hidden`)
	for range 3 { // so that the page meets the limit
		fetch(t, list)
	}
	js[bool](t, ctx, fmt.Sprintf(`($("place").value = "%x", $("form").requestSubmit(), true)`, res.Entries[:16]))
	until(t, ctx, `root.dataset.checked`)
	if got := js[string](t, ctx, `root.dataset.checked`); got != "ok" {
		t.Errorf("checked: %q, %s", got, js[string](t, ctx, `$("results").innerText`))
	}
}
