package queue

import (
	"math/rand/v2"
	"time"
)

// pace is what a wait is reckoned from.
type pace struct {
	open      bool
	rate, cap int           // admissions a minute; slots
	inside    int           // slots taken
	called    int           // invited before anybody who waits now
	turn      time.Duration // mean length of a visit; 0 not known yet
	noShow    float64       // share of the called who do not come, 0 to 0.5
}

func paceOf(b *board) pace {
	v := b.view
	return pace{
		open: v.State == "open" && v.Mode != "reject", rate: v.Valve.Rate, cap: v.Valve.Cap,
		inside: v.Inside, called: v.Called, turn: b.turn, noShow: b.noShow,
	}
}

// estimate is the range of the wait at a position (from 1), the tighter of rate
// and cap: nil while nobody is admitted, and nil when the cap decides and no visit
// has ended yet to tell how long one lasts. The low end assumes that as many as
// before do not come and a little luck, the high end that all come and visits take
// longer.
func estimate(p pace, position int) *ETA {
	if !p.open || p.rate <= 0 || p.cap <= 0 || position < 1 {
		return nil
	}
	most := float64(p.called + position)
	least := most * (1 - p.noShow)
	byRate := func(n float64) float64 { return n * 60 / float64(p.rate) }
	byCap := func(n float64) float64 {
		beyond := n - float64(max(p.cap-p.inside, 0))
		if beyond <= 0 {
			return 0
		}
		return beyond * p.turn.Seconds() / float64(p.cap)
	}
	if p.turn == 0 && most > float64(p.cap-p.inside) {
		return nil
	}
	low := 0.85 * max(byRate(least), byCap(least))
	high := 1.15*byRate(most) + 5
	if c := 1.4*byCap(most) + 5; c > high {
		high = c
	}
	return &ETA{Low: seconds(low), High: seconds(high)}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Truncate(time.Second)
}

// pollEvery is when a page should ask again: often where something may happen,
// seldom far back, where a second more changes nothing.
func pollEvery(v View) time.Duration {
	switch v.Status {
	case Called:
		if v.StandingBy {
			return time.Second
		}
		return 1500 * time.Millisecond
	case Admitted:
		return 5 * time.Second
	case Left, Expired:
		return 30 * time.Second
	case Waiting:
	}
	if v.Undrawn {
		return 20 * time.Second // there is nothing to tell yet
	}
	switch ahead := v.Ahead; {
	case ahead < 20:
		return 1500 * time.Millisecond
	case ahead < 100:
		return 2500 * time.Millisecond
	case ahead < 1000:
		return 5 * time.Second
	case ahead < 10_000:
		return 10 * time.Second
	case ahead < 100_000:
		return 20 * time.Second
	}
	return 30 * time.Second
}

// pollAfter spreads pollEvery by ±20 %, so that pages that loaded together do not
// come back together.
func pollAfter(v View) time.Duration {
	return time.Duration(float64(pollEvery(v)) * (0.8 + 0.4*rand.Float64())).Truncate(time.Millisecond)
}
