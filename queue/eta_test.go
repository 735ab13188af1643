package queue

import (
	"testing"
	"time"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	base := pace{open: true, rate: 60, cap: 1000, inside: 0}
	change := func(f func(*pace)) pace { p := base; f(&p); return p }
	for name, c := range map[string]struct {
		p        pace
		position int
		known    bool
		truth    time.Duration // must lie inside
	}{
		"rate decides":          {base, 60, true, time.Minute},
		"those called go first": {change(func(p *pace) { p.called = 60 }), 60, true, 2 * time.Minute},
		"cap decides": {change(func(p *pace) { p.rate, p.cap, p.inside, p.turn = 6000, 10, 10, time.Minute }),
			100, true, 10 * time.Minute},
		"no visit has ended": {change(func(p *pace) { p.cap, p.inside = 10, 10 }), 5, false, 0},
		"free slots suffice": {change(func(p *pace) { p.cap = 10 }), 5, true, 5 * time.Second},
		"some do not come":   {change(func(p *pace) { p.noShow = 0.5 }), 120, true, time.Minute},
		"paused":             {change(func(p *pace) { p.open = false }), 5, false, 0},
		"rate 0":             {change(func(p *pace) { p.rate = 0 }), 5, false, 0},
		"cap 0":              {change(func(p *pace) { p.cap = 0 }), 5, false, 0},
		"not waiting":        {base, 0, false, 0},
	} {
		e := estimate(c.p, c.position)
		if (e != nil) != c.known {
			t.Errorf("%s: %+v", name, e)
			continue
		}
		if e != nil && (e.Low > c.truth || e.High < c.truth || e.Low < 0 || e.High <= e.Low) {
			t.Errorf("%s: %s lies outside %s–%s", name, c.truth, e.Low, e.High)
		}
	}
}

func TestTheRangeShrinksWithThePosition(t *testing.T) {
	t.Parallel()
	p := pace{open: true, rate: 120, cap: 50, inside: 50, turn: 3 * time.Minute, called: 4, noShow: 0.1}
	before := *estimate(p, 10_000)
	for position := 9_999; position > 0; position-- {
		e := *estimate(p, position)
		if e.Low > before.Low || e.High > before.High {
			t.Fatalf("at %d: %+v, one behind %+v", position, e, before)
		}
		before = e
	}
}

func TestPollsAreFurtherApartTheFurtherBack(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for _, ahead := range []int{0, 50, 500, 5_000, 50_000, 5_000_000} {
		every := pollEvery(&View{Status: Waiting, Ahead: ahead})
		if every <= last {
			t.Errorf("%d ahead: %s, nearer %s", ahead, every, last)
		}
		last = every
	}
	seen := map[time.Duration]bool{}
	for range 100 {
		d := pollAfter(&View{Status: Waiting, Ahead: 5000})
		if d < 8*time.Second || d > 12*time.Second {
			t.Fatalf("%s", d)
		}
		seen[d] = true
	}
	if len(seen) < 20 {
		t.Errorf("only %d different delays of 100", len(seen))
	}
	for _, s := range []Status{Called, Admitted, Left, Expired} {
		if d := pollEvery(&View{Status: s}); d < time.Second || d > 30*time.Second {
			t.Errorf("%s: %s", s, d)
		}
	}
}
