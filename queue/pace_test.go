package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// grantsOf are the instants of all admissions, µs, ascending.
func grantsOf(t testing.TB, l *Line, room string) []int64 {
	t.Helper()
	var at []int64
	for _, s := range slotsOf(t, l, room) {
		at = append(at, s.granted)
	}
	slices.Sort(at)
	return at
}

// mostIn is the largest number of instants in any window of that length.
func mostIn(at []int64, window time.Duration) int {
	most, from := 0, 0
	for to := range at {
		for at[to]-at[from] > window.Microseconds() {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

// The rate is judged by the instants in the slots, not by when anybody looked:
// spaced exactly, none early, and none lost while fans stand by.
func TestTheRateIsExactInEveryWindow(t *testing.T) {
	t.Parallel()
	const rate, fans = 30_000, 1200 // 500 a second
	rdb := ownRedis(t)
	lines := []*Line{newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], rate, 1_000_000)
	tokens := crowd(t, lines[0], room, fans)
	step(t, lines[0], room)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for n := range 8 { // fans hammer both edges, claims in no order
		wg.Go(func() {
			for ctx.Err() == nil {
				for i := n; i < fans && ctx.Err() == nil; i += 8 {
					_, _ = lines[n%2].Claim(ctx, room, tokens[(i*7)%fans])
				}
			}
		})
	}
	// One stall of this machine beyond the lookahead makes a gap that is no fault of
	// the line: the longest stretch between two steps tells.
	longest, before := time.Duration(0), time.Now()
	for len(grantsOf(t, lines[0], room)) < fans {
		for _, l := range lines {
			step(t, l, room)
		}
		report(t, lines[0], room)
		longest, before = max(longest, time.Since(before)), time.Now()
	}
	cancel()
	wg.Wait()

	at := grantsOf(t, lines[0], room)
	spacing := int64(60e6 / rate)
	for i := 1; i < len(at); i++ {
		if at[i]-at[i-1] < spacing-1 { // instants are rounded to whole µs
			t.Fatalf("admissions %d µs apart, the rate allows %d", at[i]-at[i-1], spacing)
		}
	}
	for _, w := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		if most, allowed := mostIn(at, w), float64(rate)*w.Minutes()+1; float64(most) > allowed {
			t.Errorf("%d admissions within %s, allowed %.0f", most, w, allowed)
		}
	}
	if longest > lines[0].opts.Tick*2 {
		t.Logf("this machine stalled for %s: the lower bound is not judged", longest)
		return
	}
	total := time.Duration(at[len(at)-1]-at[0]) * time.Microsecond
	if least := 0.99*rate*total.Minutes() - 1; float64(len(at)) < least {
		t.Errorf("%d admissions in %s, promised at least %.0f", len(at), total, least)
	}
}

func TestStandByIsServedInArrivalOrder(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 50)
	tokens := crowd(t, l, room, 50)
	step(t, l, room)
	set(t, l, room, func(s *Settings) { s.RatePerMinute = 0 })
	for i := len(tokens) - 1; i >= 0; i-- { // the last in line claims first
		if _, err := l.Claim(t.Context(), room, tokens[i]); !isStandBy(err) {
			t.Fatalf("claim at rate 0: %v", err)
		}
	}
	set(t, l, room, func(s *Settings) { s.RatePerMinute = 60_000 })
	// Slots are free and the rate's turn has come, but others came first.
	if _, err := l.Claim(t.Context(), room, tokens[49]); !isStandBy(err) {
		t.Fatalf("the last in line claims past the others: %v", err)
	}
	eventually(t, 5*time.Second, "all admitted", func() bool {
		step(t, l, room)
		return len(slotsOf(t, l, room)) == 50
	})
	slots, before := slotsOf(t, l, room), int64(0)
	for i, token := range tokens {
		s := slots[memberOf(t, l, room, token)]
		if s.granted <= before {
			t.Fatalf("the %dth was admitted before the one ahead", i+1)
		}
		before = s.granted
	}
}

// The cap is lowered below the number of those called: nobody gets in beyond it,
// neither by a claim nor from standing by.
func TestALoweredCapCountsAtOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 4)
	tokens := crowd(t, l, room, 4)
	step(t, l, room)
	claim(t, l, room, tokens[0])
	set(t, l, room, func(s *Settings) { s.Cap = 1 })
	for _, token := range tokens[1:] {
		if _, err := l.Claim(t.Context(), room, token); !isStandBy(err) {
			t.Errorf("claim beyond the cap: %v", err)
		}
		step(t, l, room)
	}
	if n := len(slotsOf(t, l, room)); n != 1 {
		t.Errorf("%d inside, cap 1", n)
	}
	set(t, l, room, func(s *Settings) { s.Cap = 2 })
	step(t, l, room)
	if s := slotsOf(t, l, room); len(s) != 2 || s[memberOf(t, l, room, tokens[1])].jti == "" {
		t.Errorf("one slot more: %v", s)
	}
}

func TestTheCapHoldsWhateverTheRate(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	lines := []*Line{newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], 1_000_000, 7)
	tokens := crowd(t, lines[0], room, 100)
	for range 20 {
		var wg sync.WaitGroup
		for i, token := range tokens {
			wg.Go(func() {
				_ = lines[i%2].call(t.Context(), lines[i%2].own(room))
				_, _ = lines[i%2].Claim(t.Context(), room, token)
			})
		}
		wg.Wait()
		if n := len(slotsOf(t, lines[0], room)); n > 7 {
			t.Fatalf("%d inside, cap 7", n)
		}
		// Some visits end, so that the slots change hands while everybody claims.
		r := Report{At: time.Unix(1, 0)}
		for m, s := range slotsOf(t, lines[0], room) {
			if len(r.Ended) < 3 {
				r.Ended = append(r.Ended, SlotRef{PlaceID: fmt.Sprintf("%x", m), JTI: s.jti})
			}
		}
		if err := lines[0].PutReport(t.Context(), room, r); err != nil {
			t.Fatal(err)
		}
	}
	if b := refresh(t, lines[0], room); b.view.Admitted < 20 {
		t.Errorf("only %d admissions: the slots did not change hands", b.view.Admitted)
	}
}

func TestAHigherRateCountsAtOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 1, 10) // one a minute
	first, second := join(t, l, room, "first"), join(t, l, room, "second")
	step(t, l, room)
	claim(t, l, room, first.Token)
	step(t, l, room)
	_, err := l.Claim(t.Context(), room, second.Token)
	if !isStandBy(err) {
		t.Fatalf("the second within the minute: %v", err)
	}
	set(t, l, room, func(s *Settings) { s.RatePerMinute = 60_000 })
	step(t, l, room)
	eventually(t, 5*time.Second, "admission at the new rate", func() bool {
		_, err := l.Claim(t.Context(), room, second.Token)
		return err == nil
	})
}

// A window is long, so that a fan has time; the line must not wait it out.
func TestTheSilentAreCountedLessAfterAWhile(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 600, 10)
	tokens := crowd(t, l, room, 60)
	r := l.own(room)
	step(t, l, room)
	step(t, l, room)
	if b := refresh(t, l, room); b.view.Called != 10 {
		t.Fatalf("%d called for 10 slots", b.view.Called)
	}
	for _, token := range tokens[:10] { // as if they had been silent for a while
		due := time.Now().Add(l.opts.ClaimWindow - inviteAhead - time.Second)
		if err := l.rdb.ZAdd(t.Context(), r.keys[kDue], z(due.UnixMicro(), memberOf(t, l, room, token))).Err(); err != nil {
			t.Fatal(err)
		}
	}
	step(t, l, room)
	b := refresh(t, l, room)
	if b.view.Called < 13 || b.view.Called > 20 {
		t.Errorf("%d called while ten are silent", b.view.Called)
	}
	// The late ones come all the same, and keep their order.
	claim(t, l, room, tokens[0])
	late, err := l.rdb.HGet(t.Context(), r.keys[kState], "late").Float64()
	if err != nil || late != 1 {
		t.Errorf("a late claim was not learnt: %v, %v", late, err)
	}
	_, _ = l.Claim(t.Context(), room, tokens[b.view.Called-1])
	if late, _ := l.rdb.HGet(t.Context(), r.keys[kState], "late").Float64(); late >= 1 {
		t.Errorf("a prompt claim counts as late: %v", late)
	}
}
