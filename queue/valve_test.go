package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"usher/admission"
)

func adaptive(s *Settings) { s.Valve = Adaptive }

// numbered ships a good report with a sequence.
func numbered(t testing.TB, l *Line, room string, n int, change ...func(*Report)) {
	t.Helper()
	r := Report{At: time.Now().Add(-time.Hour), Seq: int64(n), Available: 5, Total: 9, Lanes: LaneReport{QueueWait: time.Millisecond, HoldDelay: 20 * time.Second}}
	for _, f := range change {
		f(&r)
	}
	if err := l.PutReport(t.Context(), room, r); err != nil {
		t.Fatal(err)
	}
}

// decide reads the board and lets the valve decide on it.
func decide(t testing.TB, l *Line, room string) Valve {
	t.Helper()
	refresh(t, l, room)
	if err := l.steer(t.Context(), l.own(room)); err != nil {
		t.Fatal(err)
	}
	return refresh(t, l, room).view.Valve
}

// opened sets what a valve has decided, as if it had long been so.
func opened(t testing.TB, l *Line, room string, rate, slots int) {
	t.Helper()
	now, err := l.rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.rdb.HSet(t.Context(), l.own(room).keys[kState], "vrate", rate, "vcap", slots, "vat", now.UnixMicro()).Err(); err != nil {
		t.Fatal(err)
	}
}

// Three edges read the same reports and all decide; each report is decided on once,
// or one bad second would be cut three times.
func TestSeveralEdgesDecideOnce(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	lines, regs := make([]*Line, 3), make([]*prometheus.Registry, 3)
	for i := range lines {
		regs[i] = prometheus.NewRegistry()
		lines[i] = newLine(t, rdb, func(o *Options) { o.Registerer = regs[i] })
	}
	room := openRoom(t, lines[0], 1000, 100, adaptive)
	const reports = 40
	for n := 1; n <= reports; n++ {
		numbered(t, lines[0], room, n, func(r *Report) { r.Lanes.Shed = n % 2 })
		for _, l := range lines {
			refresh(t, l, room)
		}
		gate := make(chan struct{})
		var wg sync.WaitGroup
		for _, l := range lines {
			for range 3 {
				wg.Go(func() {
					<-gate
					if err := l.steer(t.Context(), l.own(room)); err != nil {
						t.Error(err)
					}
				})
			}
		}
		close(gate)
		wg.Wait()
		if b := refresh(t, lines[n%3], room); b.valve.n != int64(n) || b.valve.seq != int64(n) {
			t.Fatalf("after report %d: %d decisions, the last for %d", n, b.valve.n, b.valve.seq)
		}
	}
	// Whichever edge was first with each: together they count every decision once.
	decided := 0.0
	for _, reg := range regs {
		decided += counted(t, reg, "usher_valve_decisions_total")
	}
	if decided != reports {
		t.Errorf("three edges count %v decisions on %d reports", decided, reports)
	}
	// Shed in every second report, but one dead time has not passed: cut once.
	if v := decide(t, lines[1], room); v.Rate != 50 {
		t.Errorf("%+v: cut other than once from 100", v)
	}
}

// counted is the sum of a metric over its labels.
func counted(t testing.TB, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestAnAdaptiveRoomBeginsSlowlyAndStopsWithoutReports(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""), func(o *Options) { o.ReportTTL = 3 * time.Second }) // longer than a busy machine stalls
	room := openRoom(t, l, 60_000, 1000, adaptive)
	tokens := crowd(t, l, room, 10)
	step(t, l, room)
	if b := refresh(t, l, room); b.view.Called != 0 {
		t.Fatalf("%d called before anything was decided", b.view.Called)
	}
	numbered(t, l, room, 1)
	if v := decide(t, l, room); v.Rate != 6000 || v.Cap != 100 || v.Reason != admission.SlowStart || v.Mode != Adaptive || v.DeadTime != 20*time.Second {
		t.Fatalf("%+v", v)
	}
	step(t, l, room)
	claim(t, l, room, tokens[0])
	var v Valve
	eventually(t, 30*time.Second, "closed without reports, by a decision", func() bool {
		v = decide(t, l, room) // between the two boards of one call the report may grow too old, before anybody decides
		return v.Rate == 0 && !v.Since.IsZero()
	})
	if v.Reason != admission.NoReport || v.Cap != 0 {
		t.Errorf("%+v", v)
	}
	if e := status(t, l, room, tokens[9]).ETA; e != nil {
		t.Errorf("a wait is promised while nobody is called: %+v", e)
	}
	// The report is back. Before anybody has decided, the rate of before is not in force.
	opened(t, l, room, 60_000, 1000)
	numbered(t, l, room, 9)
	if b := refresh(t, l, room); b.view.Valve.Rate != 0 {
		t.Errorf("a silence, then at once %+v", b.view.Valve)
	}
	if _, err := l.Claim(t.Context(), room, tokens[1]); !isStandBy(err) {
		t.Errorf("admitted before the valve began anew: %v", err)
	}
	if v := decide(t, l, room); v.Rate != 6000 || v.Reason != admission.SlowStart {
		t.Errorf("after a silence: %+v", v)
	}
}

func TestAFixedRoomIgnoresTheLanes(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 600, 10)
	numbered(t, l, room, 1, func(r *Report) { r.Lanes = LaneReport{QueueWait: time.Minute, Shed: 999, HoldDelay: -1} })
	v := decide(t, l, room)
	if v.Mode != "fixed" || v.Rate != 600 || v.Cap != 10 || v.Reason != admission.Fixed {
		t.Errorf("%+v", v)
	}
	step(t, l, room)
	if b := refresh(t, l, room); b.valve.n != 0 {
		t.Errorf("a fixed valve made %d decisions", b.valve.n)
	}
}

// What the valve allows binds the scripts, up and down; the operator's numbers bind
// whatever the valve allows; and what nobody renews is worth nothing.
func TestTheScriptsObeyTheTighterOfValveAndOperator(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10, adaptive)
	tokens := crowd(t, l, room, 10)
	opened(t, l, room, 60_000, 3)
	admit := func(i int) bool {
		t.Helper()
		step(t, l, room)
		_, err := l.Claim(t.Context(), room, tokens[i])
		if err != nil && !isStandBy(err) && !errors.Is(err, ErrNotCalledYet) {
			t.Fatal(err)
		}
		return err == nil
	}
	for i := range 3 {
		eventually(t, 5*time.Second, "admission", func() bool { return admit(i) })
	}
	for range 20 {
		if admit(3) {
			t.Fatal("a fourth got in, the valve's cap is 3")
		}
	}
	opened(t, l, room, 60_000, 2) // below those inside: nobody until enough have left
	leave := func() {
		t.Helper()
		for m, s := range slotsOf(t, l, room) {
			r := Report{At: time.Unix(1, 0), Ended: []SlotRef{{PlaceID: fmt.Sprintf("%x", m), JTI: s.jti}}}
			if err := l.PutReport(t.Context(), room, r); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	leave()
	if admit(3) {
		t.Fatal("2 inside, the valve's cap is 2")
	}
	leave()
	eventually(t, 5*time.Second, "a slot below the cap", func() bool { return admit(3) })

	opened(t, l, room, 0, 10)
	for range 20 {
		if admit(4) {
			t.Fatal("admitted at rate 0")
		}
	}
	opened(t, l, room, 60_000, 1_000_000)
	set(t, l, room, func(s *Settings) { s.Cap = 3 })
	eventually(t, 5*time.Second, "the operator's cap", func() bool { return admit(4) })
	if admit(5) {
		t.Error("the valve allows more than the operator")
	}
	set(t, l, room, func(s *Settings) { s.Cap = 10 })
	stale := time.Now().Add(-decisionLife - 5*time.Second).UnixMicro()
	l.rdb.HSet(t.Context(), l.own(room).keys[kState], "vat", stale)
	if admit(5) {
		t.Error("a decision that nobody renews is obeyed")
	}
	set(t, l, room, func(s *Settings) { s.Valve = "fixed" })
	eventually(t, 5*time.Second, "fixed again", func() bool { return admit(5) })
}

// A raise and a cut in full swing: each admission keeps the distance of the rate in
// force when it was granted, so no window has more than its rate allows.
func TestTheRateIsExactWhileTheValveMoves(t *testing.T) {
	t.Parallel()
	l := newLine(t, ownRedis(t))
	room := openRoom(t, l, 600_000, 1_000_000, adaptive)
	tokens := crowd(t, l, room, 600)
	rates := []int{6000, 30_000, 3000, 60_000}
	var from []int64 // instant from which each rate was in force
	for _, rate := range rates {
		opened(t, l, room, rate, 1_000_000)
		now, err := l.rdb.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		from = append(from, now.UnixMicro())
		for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
			step(t, l, room)
			for _, token := range tokens[:min(len(tokens), 60)] {
				if _, err := l.Claim(t.Context(), room, token); err == nil {
					tokens = tokens[1:]
				}
			}
		}
	}
	at := grantsOf(t, l, room)
	if len(at) < 100 {
		t.Fatalf("only %d admissions", len(at))
	}
	ahead := l.opts.Tick * 5 / 2 // granted before the cut, for an instant after it
	for i := 1; i < len(at); i++ {
		most := 0
		for j, rate := range rates {
			began, ended := from[j], int64(1<<62)
			if j+1 < len(from) {
				ended = from[j+1]
			}
			if at[i] >= began && at[i]-ahead.Microseconds() <= ended {
				most = max(most, rate)
			}
		}
		if gap := at[i] - at[i-1]; gap < int64(60e6/most)-1 {
			t.Fatalf("admissions %d µs apart, %d a minute in force", gap, most)
		}
	}
}

// Q9 holds for an adaptive room, too: a stop reaches every edge within a second,
// and what follows it begins slowly.
func TestQ9_AStopStopsAnAdaptiveRoom(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	lines := []*Line{newLine(t, rdb), newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], 60_000, 1_000_000, adaptive)
	crowd(t, lines[0], room, 3000)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, l := range lines {
		wg.Go(func() { _ = l.Run(ctx) })
	}
	start := time.Now()
	wg.Go(func() { // reports each 100 ms, numbered as the box office does
		for ctx.Err() == nil {
			now := time.Now()
			_ = lines[0].PutReport(ctx, room, Report{At: now.Add(-time.Hour), Seq: now.UnixMicro(), Lanes: LaneReport{HoldDelay: time.Second}})
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	eventually(t, 20*time.Second, "calls", func() bool { return refresh(t, lines[0], room).view.Called > 10 })
	set(t, lines[0], room, func(s *Settings) { s.State = "paused" })
	stopped := time.Now()
	after := refresh(t, lines[0], room).view.Called
	eventually(t, 20*time.Second, "a decision after the stop", func() bool {
		return refresh(t, lines[0], room).view.Valve.Reason == admission.Stopped
	})
	for time.Since(stopped) < time.Second { // a whole second of every edge's ticks
		step(t, lines[1], room)
	}
	if b := refresh(t, lines[0], room); b.view.Called != after {
		t.Errorf("%d called, then %d, after the stop (%s in)", after, b.view.Called, stopped.Sub(start))
	}
	set(t, lines[0], room, func(s *Settings) { s.State = "open" })
	eventually(t, 20*time.Second, "a slow start", func() bool {
		v := refresh(t, lines[0], room).view.Valve
		if v.Rate > admission.Slow(60_000) {
			t.Fatalf("after a stop at once %+v", v)
		}
		return v.Reason == admission.SlowStart || v.Reason == admission.HoldDeadTime
	})
}
