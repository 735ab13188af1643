package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var open1000 = Ceiling{Rate: 1000, Cap: 500, Open: true}

// at is a good report so many seconds after the start, one a second.
func at(seconds int) Report {
	now := simStart.Add(time.Duration(seconds) * time.Second)
	return Report{
		Seq: int64(seconds) + 1, At: now, Stamp: now, Now: now, TTL: 5 * time.Second,
		QueueWait: 10 * time.Millisecond, Delay: 20 * time.Second, Waiting: 100,
	}
}

// settled is a valve in its epoch since the start, with half the ceiling.
func settled(change ...func(*State)) State {
	s := State{
		Rate: 500, Cap: 250, Reason: Raise, Since: simStart, Seq: 1, At: simStart, Stamp: simStart, Epoch: simStart,
		Dead: 20 * time.Second, ProvenRate: 475, ProvenCap: 225,
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func TestPlan(t *testing.T) {
	t.Parallel()
	last := func(n int) func(*State) { // as if the report before had come n seconds after the start
		return func(s *State) {
			s.Stamp = simStart.Add(time.Duration(n) * time.Second)
			s.At, s.Seq = s.Stamp, int64(n)+1
		}
	}
	used := func(seconds int, change ...func(*Report)) Report { // the rate was used
		r := at(seconds)
		r.Admitted, r.Inside = int64(500*seconds/60), 100
		for _, f := range change {
			f(&r)
		}
		return r
	}
	slow := func(r *Report) { r.QueueWait = 150 * time.Millisecond }
	with := func(r Report, f func(*Report)) Report { f(&r); return r }
	for name, c := range map[string]struct {
		s         State
		r         Report
		c         Ceiling
		rate, cap int
		why       Reason
	}{
		"never decided":         {State{}, at(0), open1000, 100, 50, SlowStart},
		"never any report":      {State{}, Report{Now: simStart, TTL: 5 * time.Second}, open1000, 0, 0, NoReport},
		"those inside are in":   {State{}, with(at(0), func(r *Report) { r.Inside = 300 }), open1000, 100, 350, SlowStart},
		"inside beyond the cap": {State{}, with(at(0), func(r *Report) { r.Inside = 480 }), open1000, 100, 500, SlowStart},
		"a ceiling of one":      {State{}, at(0), Ceiling{1, 1, true}, 1, 1, SlowStart},
		"within the dead time":  {settled(last(23)), used(24), open1000, 500, 250, HoldDeadTime},
		"a step up":             {settled(last(24)), used(25), open1000, 550, 250, Raise},
		"the cap is the tighter": {settled(last(24)), with(at(25), func(r *Report) { r.Inside = 250 }), open1000,
			500, 275, Raise},
		"below what is proven it doubles": {settled(last(24), func(s *State) { s.Rate, s.ProvenRate = 100, 900 }), used(25), open1000,
			200, 250, SlowStart},
		"not used":            {settled(last(24)), at(25), open1000, 500, 250, Idle},
		"nobody waits":        {settled(last(24)), used(25, func(r *Report) { r.Waiting = 0 }), open1000, 500, 250, Idle},
		"near the target":     {settled(last(24)), used(25, func(r *Report) { r.QueueWait = 60 * time.Millisecond }), open1000, 500, 250, NearTarget},
		"the worst is minded": {settled(last(24), func(s *State) { s.Wait = 90 * time.Millisecond }), used(25), open1000, 500, 250, NearTarget},
		"at the ceiling":      {settled(last(24)), used(25), Ceiling{500, 250, true}, 500, 250, AtCeiling},
		"above the ceiling":   {settled(last(24)), used(25), Ceiling{300, 200, true}, 300, 200, AtCeiling},
		"a hiccup":            {settled(last(9)), used(10, slow), open1000, 500, 250, OverTarget},
		"over target twice":   {settled(last(9), func(s *State) { s.Over = simStart.Add(8 * time.Second) }), used(10, slow), open1000, 398, 250, OverTarget},
		"far over": {settled(last(9)), used(10, func(r *Report) { r.QueueWait = time.Second }), open1000,
			249, 80, OverTarget},
		"shed": {settled(last(9)), used(10, func(r *Report) { r.Shed = 1 }), open1000, 249, 80, Shed},
		"one cut for one cause": {settled(last(9), func(s *State) { s.Cut = simStart }), used(10, func(r *Report) { r.Shed = 9 }), open1000,
			500, 250, Shed},
		"again after a dead time": {settled(last(24), func(s *State) { s.Cut = simStart }), used(25, func(r *Report) { r.Shed = 9 }), open1000,
			249, 80, Shed},
		"what was used is cut": {settled(last(59), func(s *State) { s.Over = simStart.Add(58 * time.Second) }),
			with(at(60), func(r *Report) { slow(r); r.Admitted = 300 }), open1000, 240, 250, OverTarget},
		"never cut to nothing": {settled(last(9), func(s *State) { s.Rate, s.Cap = 20, 10 }), used(10, func(r *Report) { r.Shed = 1 }), open1000,
			20, 10, Shed},
		"paused":              {settled(last(9)), used(10), Ceiling{1000, 500, false}, 100, 150, Stopped},
		"rate 0":              {settled(last(9)), used(10), Ceiling{0, 500, true}, 0, 150, Stopped},
		"open after a pause":  {settled(last(9), func(s *State) { s.Reason = Stopped }), used(10), open1000, 100, 150, SlowStart},
		"silence":             {settled(), used(6), open1000, 100, 150, SlowStart},
		"nothing new":         {settled(), with(used(0), func(r *Report) { r.Now = r.Now.Add(6 * time.Second) }), open1000, 0, 0, NoReport},
		"only old news":       {settled(), with(used(0), func(r *Report) { r.Now, r.Refused = r.Now.Add(6*time.Second), true }), open1000, 0, 0, StaleReport},
		"negative wait":       {settled(last(24)), used(25, func(r *Report) { r.QueueWait = -1 }), open1000, 500, 250, Lying},
		"negative shed":       {settled(last(24)), used(25, func(r *Report) { r.Shed = -1 }), open1000, 500, 250, Lying},
		"negative delay":      {settled(last(24)), used(25, func(r *Report) { r.Delay = -1 }), open1000, 500, 250, Lying},
		"absurd wait":         {settled(last(24)), used(25, func(r *Report) { r.QueueWait = time.Hour }), open1000, 500, 250, Lying},
		"an older sequence":   {settled(last(24)), used(25, func(r *Report) { r.Seq = 3 }), open1000, 500, 250, Lying},
		"from the future":     {settled(last(24)), used(25, func(r *Report) { r.At = r.At.Add(time.Hour) }), open1000, 500, 250, Lying},
		"from the past":       {settled(last(24)), used(25, func(r *Report) { r.At = r.At.Add(-6 * time.Second) }), open1000, 500, 250, StaleReport},
		"clocks that differ":  {settled(last(24), func(s *State) { s.At = s.At.Add(-time.Hour) }), used(25, func(r *Report) { r.At = r.At.Add(-time.Hour) }), open1000, 550, 250, Raise},
		"lying for too long":  {settled(), used(6, func(r *Report) { r.Shed = -1 }), open1000, 0, 0, Lying},
		"the line forgot":     {settled(last(24), func(s *State) { s.Admitted = 9999 }), used(25), open1000, 100, 150, SlowStart},
		"a liar at the start": {State{}, with(at(0), func(r *Report) { r.Shed = -1 }), open1000, 0, 0, Lying},
	} {
		s, d := Plan(c.s, c.r, c.c)
		if d.Rate != c.rate || d.Cap != c.cap || d.Reason != c.why {
			t.Errorf("%s: %+v, want %d, %d, %s", name, d, c.rate, c.cap, c.why)
		}
		if s.Rate != d.Rate || s.Cap != d.Cap || s.Reason != d.Reason {
			t.Errorf("%s: the state says %d, %d, %s", name, s.Rate, s.Cap, s.Reason)
		}
	}
}

// A minute is the dead time until anybody has held anything; a median out of all
// reason is bounded.
func TestDeadTime(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]time.Duration{
		0: unknownDead, time.Second: leastDead, 42 * time.Second: 42 * time.Second, time.Hour: mostDead,
	} {
		r := at(0)
		r.Delay = delay
		s, _ := Plan(State{}, r, open1000)
		if s.Dead != want {
			t.Errorf("median %s: %s, want %s", delay, s.Dead, want)
		}
	}
}

// Whatever is reported in whatever order: the valve never leaves what the operator
// allows, is never stuck while reports are good, and begins slowly after a silence.
func TestTheValveStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, now, seq, admitted := State{}, simStart, int64(1), int64(0)
		before, stamp := Decision{}, time.Time{}
		for range rapid.IntRange(1, 120).Draw(t, "looks") {
			c := Ceiling{
				Rate: rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 1_000_000)).Draw(t, "rate"),
				Cap:  rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 1_000_000)).Draw(t, "cap"),
				Open: rapid.IntRange(0, 9).Draw(t, "open") > 0,
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 8000).Draw(t, "ms")) * time.Millisecond)
			heard := rapid.IntRange(0, 9).Draw(t, "heard") > 0
			if heard {
				stamp = now
				seq += int64(rapid.IntRange(-1, 3).Draw(t, "seq"))
			}
			admitted += int64(rapid.IntRange(0, 50).Draw(t, "admitted"))
			r := Report{
				Seq: seq, At: now.Add(time.Duration(rapid.IntRange(-9000, 9000).Draw(t, "lag")/8) * time.Millisecond),
				Stamp: stamp, Now: now, TTL: 5 * time.Second, Refused: rapid.Bool().Draw(t, "refused"),
				QueueWait: time.Duration(rapid.IntRange(-1, 900).Draw(t, "wait")) * time.Millisecond,
				Shed:      max(0, rapid.IntRange(-20, 3).Draw(t, "shed")),
				Delay:     time.Duration(rapid.IntRange(-1, 200).Draw(t, "delay")) * time.Second,
				Admitted:  admitted, Inside: rapid.IntRange(0, 1000).Draw(t, "inside"), Waiting: rapid.IntRange(0, 5).Draw(t, "waiting"),
			}
			next, d := Plan(s, r, c)
			if again, e := Plan(s, r, c); again != next || e != d {
				t.Fatalf("two edges decide differently: %+v and %+v", d, e)
			}
			switch {
			case d.Rate < 0 || d.Rate > c.Rate || d.Cap < 0 || d.Cap > c.Cap:
				t.Fatalf("%+v outside %+v", d, c)
			case before.Rate == 0 && d.Rate > Slow(c.Rate):
				t.Fatalf("from nothing to %d of %d at once", d.Rate, c.Rate)
			case stamp.IsZero() || now.Sub(stamp) > r.TTL:
				if d.Rate != 0 || d.Reason != NoReport && d.Reason != StaleReport {
					t.Fatalf("%+v without a report", d)
				}
			case d.Rate == 0 && d.Reason != Lying && d.Reason != StaleReport && c.Rate > 0 && c.Cap > 0:
				t.Fatalf("stuck: %+v under %+v", d, c)
			}
			s, before = next, d
		}
	})
}
