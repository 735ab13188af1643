package queue

import (
	"math"
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
	ended     int           // visits that turn is the mean of
}

func paceOf(b *board, reportTTL time.Duration) pace {
	v := b.view
	return pace{
		open: v.State == "open" && v.Mode != "reject" && b.fresh(reportTTL) && !v.Recovering, rate: v.Valve.Rate, cap: v.Valve.Cap,
		inside: v.Inside, called: v.Called, turn: b.turn, noShow: b.noShow, ended: int(v.Admitted) - v.Inside,
	}
}

// surely is how many standard errors the range keeps from the mean on each side: with
// what else is uncertain, nine of ten promises then hold (see the simulation).
const surely = 2

// estimate is the range of the wait until a place at a position (from 1) is called, by
// the tighter of rate and cap: nil while nobody is admitted, and nil when the cap
// decides and no visit has ended yet to tell how long one lasts.
//
// By rate: each admission takes 1/(1 - absent) places off the line. As many as the
// rate takes in ten seconds are called ahead of it, which the low end allows for;
// those called beyond that come first, which the high end does. By cap: slots come
// back at cap/visit; the error of the mean of n visits is 1/√n of it, and so is that
// of the sum of n to come, lengths being about exponential.
func estimate(p pace, position int) *ETA { return estimateBetween(p, position, position) }

// estimateBetween is estimate for a place of which only a range is known: at the least,
// and at the most, so many are called up to and with it.
func estimateBetween(p pace, least, latest int) *ETA {
	if !p.open || p.rate <= 0 || p.cap <= 0 || least < 1 {
		return nil
	}
	perSecond, free := float64(p.rate)/60, float64(max(p.cap-p.inside, 0))
	ahead10 := perSecond * inviteAhead.Seconds()
	fewest, most := float64(least)*(1-p.noShow), float64(latest)*(1-0.7*p.noShow)
	waiting := float64(p.called) * (1 - p.noShow) * (1 - p.noShow) // the silent are among the called until their window ends
	low := 0.85*fewest/perSecond - inviteAhead.Seconds()
	high := 1.15*(most+max(0, waiting-ahead10))/perSecond + 10
	if p.turn == 0 && most+float64(p.called) > free {
		return nil
	}
	if p.turn > 0 {
		each, n := p.turn.Seconds()/float64(p.cap), float64(min(max(p.ended, 10), 39)) // 39: what a mean that forgets 5 % is worth
		if beyond := fewest - free; beyond > 0 {
			low = max(low, beyond*each*max(0, 1-surely*math.Sqrt(1/n+1/beyond)))
		}
		if beyond := most + waiting - free; beyond > 0 {
			high = max(high, beyond*each*(1+surely*math.Sqrt(1/n+1/beyond))+10)
		}
	}
	return &ETA{Low: seconds(max(low, 0)), High: seconds(high)}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Truncate(time.Second)
}

// pollEvery is when a page should ask again: often where something may happen,
// seldom far back, where a second more changes nothing.
func pollEvery(v *View) time.Duration {
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
func pollAfter(v *View) time.Duration {
	return time.Duration(float64(pollEvery(v)) * (0.8 + 0.4*rand.Float64())).Truncate(time.Millisecond)
}
