package queuehttp

import (
	"io/fs"
	"testing"
)

// hiddenTabs runs the page's plan (50-when.js itself, between the two halves) through
// the waits of 1,000 hidden tabs, by a clock that jumps from poll to poll: 600 fans a
// minute come in, each has a window of two minutes, and the edge tells what estimate
// reckons, at each poll.
const (
	hiddenTabs = `(() => {
  let now = 1.8e12, timer = 0, doc = {}, state = "waiting", asked = 0, live = false, owed = false;
  const document = {hidden: true, addEventListener() {}}, addEventListener = () => {};
  const Date = {now: () => now}, setTimeout = () => 0, clearTimeout = () => {};
  const wanting = () => false, asks = () => true, over = ["left", "expired"], windowMs = () => 120000;
  const poll = () => {}, claim = poll, pollRoom = poll;
`
	throughTheirWaits = `
  const tabs = [];
  for (let n = 0; n < 1000; n++) {
    const start = now, wait = (20 + n / 10) * 60000, polls = [];
    state = "waiting";
    for (let left = wait; left > 0; left = start + wait - now) {
      doc = {pollAfterMs: 10000 * (0.8 + 0.4 * Math.random()), eta: {lowSeconds: Math.max(0, Math.trunc(0.85 * left / 1000 - 10))}};
      plan();
      now = due;
      polls.push(now - start);
    }
    state = "called";
    plan();
    tabs.push({wait, polls, again: due - now});
  }
  return tabs;
})()`
)

// Hidden tabs far back: nothing before the turn comes near, one poll then; near the head
// one every half claim window, so that a call is seen while half of it is left.
func TestQ16_AThousandHiddenTabsFarBack(t *testing.T) {
	t.Parallel()
	source, err := fs.ReadFile(pageFiles, "static/room.js/50-when.js")
	if err != nil {
		t.Fatal(err)
	}
	ctx := browser(t)
	const window = 120_000.0
	total, early, moments := 0, 0, map[int]bool{}
	for _, tab := range js[[]struct {
		Wait, Again float64
		Polls       []float64
	}](t, ctx, hiddenTabs+string(source)+throughTheirWaits) {
		total += len(tab.Polls)
		moments[int(tab.Polls[0]-0.85*tab.Wait)/100] = true
		if tab.Polls[0] < 0.75*tab.Wait {
			early++
		}
		far := 0 // polls while more than four windows are left
		for i, at := range tab.Polls {
			if tab.Wait-at > 4*window {
				far++
			}
			if i > 0 && at-tab.Polls[i-1] < 0.4*window {
				t.Fatalf("two polls within %.0f s: %+v", (at-tab.Polls[i-1])/1000, tab)
			}
		}
		if far > 1 {
			t.Fatalf("%d polls of a tab far back: %+v", far, tab)
		}
		if late := tab.Polls[len(tab.Polls)-1] - tab.Wait; late > window/2 || tab.Again > window/2 {
			t.Fatalf("a call is seen after %.0f s, and looked at again after %.0f", late/1000, tab.Again/1000)
		}
	}
	if early > 0 || total > 7*1000 {
		t.Errorf("%d polls of 1,000 tabs, %d tabs asked early", total, early)
	}
	if len(moments) < 20 {
		t.Errorf("all tabs ask at the same %d moments before their turn", len(moments))
	}
	t.Logf("%d polls of 1,000 hidden tabs", total)
}
