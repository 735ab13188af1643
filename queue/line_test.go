package queue

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQ6_TheSameFanJoiningAHundredTimesHasOnePlace(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	join(t, l, room, "before")
	first := join(t, l, room, "fan")
	if !first.Created || first.Position != 2 {
		t.Fatalf("first join: %+v", first)
	}
	join(t, l, room, "behind")
	for range 99 {
		v := join(t, l, room, "fan")
		if v.Created || v.Position != 2 || v.Token != first.Token || v.PlaceID != first.PlaceID {
			t.Fatalf("joined again: %+v\nfirst: %+v", v, first)
		}
	}
	if b := refresh(t, l, room); b.view.Waiting != 3 {
		t.Errorf("%d places, want 3", b.view.Waiting)
	}
}

func TestQ5_TenThousandJoinsInOneInstantAreCalledInArrivalOrder(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 1_000_000, 1_000_000)
	r := l.own(room)
	// The last score lies ahead of the clock: every join falls on the same instant
	// for Redis' clock, and only the strict increase tells them apart.
	if err := l.rdb.HSet(t.Context(), r.keys[kState], "last", time.Now().Add(time.Hour).UnixMicro()).Err(); err != nil {
		t.Fatal(err)
	}
	ahead := time.Now().Add(30 * time.Minute).UnixMicro()
	tokens := crowd(t, l, room, 10_000)
	order := make([]string, len(tokens))
	for i, token := range tokens {
		p, err := l.verify(room, token)
		if err != nil {
			t.Fatal(err)
		}
		order[i] = string(p.member[:])
		if p.score <= ahead {
			t.Fatalf("place %d has %d: below the last score", i, p.score)
		}
		ahead = p.score
	}
	called := 0
	for called < len(order) {
		if _, err := l.runList(t.Context(), callScript, r.keys, micros(time.Minute), micros(time.Minute),
			micros(time.Hour), micros(time.Hour), micros(time.Second), micros(inviteAhead), loopBound, keptMissed); err != nil {
			t.Fatal(err)
		}
		now, err := l.rdb.ZCard(t.Context(), r.keys[kCalled]).Result()
		if err != nil {
			t.Fatal(err)
		}
		if int(now) == called || int(now) > called+loopBound {
			t.Fatalf("one step called from %d to %d", called, now)
		}
		// The step called exactly the next ones: nobody behind, nobody left out.
		for _, m := range order[called:now] {
			if err := l.rdb.ZScore(t.Context(), r.keys[kCalled], m).Err(); err != nil {
				t.Fatalf("an inversion among places %d to %d: %v", called, now, err)
			}
		}
		called = int(now)
	}
}

func TestQ2_AllAreCalledWithinASecondWithoutTheirPolls(t *testing.T) {
	t.Parallel()
	l := newLine(t, ownRedis(t))
	room := openRoom(t, l, 600, 30)
	head := join(t, l, room, "head") // closes the tab and never comes
	for i := range 29 {
		join(t, l, room, fmt.Sprint(i))
	}
	start := time.Now()
	run(t, room, l)
	eventually(t, 5*time.Second, "30 called", func() bool {
		n, err := l.rdb.ZCard(t.Context(), l.own(room).keys[kCalled]).Result()
		return err == nil && n == 30
	})
	if took := time.Since(start); took > time.Second {
		t.Errorf("took %s", took)
	}
	if v := status(t, l, room, head.Token); v.Status != Called || v.CalledUntil.IsZero() {
		t.Errorf("the head: %+v", v)
	}
}

func TestQ4_OneSlotAndTwoHundredFansAtOnce(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	lines := []*Line{newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], 60_000, 1)
	run(t, room, lines...)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	inside, places := 0, map[string]bool{}
	for i := range 200 {
		wg.Go(func() {
			<-gate
			l := lines[i%2]
			v, err := l.Join(t.Context(), room, Fan{ID: fmt.Sprint("fan", i)})
			if err != nil {
				t.Errorf("join: %v", err)
				return
			}
			mu.Lock()
			places[v.PlaceID] = true
			mu.Unlock()
			for range 20 {
				_, err := lines[(i+1)%2].Claim(t.Context(), room, v.Token)
				switch {
				case err == nil:
					mu.Lock()
					inside++
					mu.Unlock()
					return
				case !errors.Is(err, ErrNotCalledYet) && !isStandBy(err):
					t.Errorf("claim: %v", err)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	close(gate)
	wg.Wait()
	b := refresh(t, lines[0], room)
	if len(places) != 200 || b.view.Waiting+b.view.Called+b.view.Inside != 200 {
		t.Errorf("%d places given, %d+%d+%d kept, want 200", len(places), b.view.Waiting, b.view.Called, b.view.Inside)
	}
	if b.view.Inside != 1 || inside > 1 {
		t.Errorf("%d inside by the slots, %d by the fans, want 1", b.view.Inside, inside)
	}
	if b.view.Admitted != 1 {
		t.Errorf("%d admissions counted", b.view.Admitted)
	}
}

func TestQ1_WhoDoesNotComeHoldsUpNobody(t *testing.T) {
	t.Parallel()
	window := 400 * time.Millisecond
	l := newLine(t, ownRedis(t), func(o *Options) {
		o.ClaimWindow, o.Tick, o.BoardEvery = window, 50*time.Millisecond, 50*time.Millisecond
	})
	room := openRoom(t, l, 60_000, 10)
	tokens := crowd(t, l, room, 40)
	run(t, room, l)
	admit := func(tokens []Token) {
		for _, token := range tokens {
			eventually(t, 5*time.Second, "admission", func() bool {
				_, err := l.Claim(t.Context(), room, token)
				return err == nil
			})
		}
	}
	admit(tokens[:10])
	// Their visits end; the next ten are called and never come.
	freeAll(t, l, room)
	start := time.Now()
	eventually(t, 5*time.Second, "the next are called", func() bool { return status(t, l, room, tokens[19]).Status == Called })
	admit(tokens[20:21])
	if took := time.Since(start); took > window+time.Second {
		t.Errorf("the 21st waited %s behind ten who did not come", took)
	}
	if v := status(t, l, room, tokens[10]); v.Status != Expired {
		t.Errorf("one who did not come is %s", v.Status)
	}
	if v := status(t, l, room, tokens[0]); v.Status != Expired {
		t.Errorf("an ended visit is %s", v.Status)
	}
}

// freeAll reports every visit as ended.
func freeAll(t *testing.T, l *Line, room string) {
	t.Helper()
	r := Report{At: time.Unix(1, 0)}
	for m, s := range slotsOf(t, l, room) {
		r.Ended = append(r.Ended, SlotRef{PlaceID: fmt.Sprintf("%x", m), JTI: s.jti})
	}
	if err := l.PutReport(t.Context(), room, r); err != nil {
		t.Fatal(err)
	}
}

func TestScoresStayUniqueAndRising(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := newLine(t, dial(t, ""))
		room := openRoom(t, l, 0, 1)
		r := l.own(room)
		last := int64(0)
		for i := range rapid.IntRange(1, 20).Draw(rt, "joins") {
			if rapid.Bool().Draw(rt, "failover") { // Redis forgot the last second
				l.rdb.HDel(t.Context(), r.keys[kState], "last")
			}
			if rapid.Bool().Draw(rt, "clock") { // and its clock went back
				r.saw(last + int64(rapid.IntRange(0, 1e9).Draw(rt, "ahead")))
			}
			floor := r.floor.Load()
			p, _ := l.verify(room, join(t, l, room, fmt.Sprint(i)).Token)
			if p.score <= last || p.score <= floor || float64(p.score) != float64(int64(float64(p.score))) {
				rt.Fatalf("score %d after %d", p.score, last)
			}
			last = p.score
		}
	})
}
