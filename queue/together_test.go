package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"usher/internal/devstack/devstacktest"
)

// rush joins n fans at once and returns what each was told.
func rush(t testing.TB, l *Line, room string, n int) ([]View, []error) {
	t.Helper()
	views, errs := make([]View, n), make([]error, n)
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			views[i], errs[i] = l.Join(ctx, room, Fan{ID: fmt.Sprintf("rush-%d", i)})
		})
	}
	close(gate)
	wg.Wait()
	return views, errs
}

// onePlaceEach holds the line against what its fans were told.
func onePlaceEach(t testing.TB, l *Line, room string, views []View, errs []error) {
	t.Helper()
	ids, positions := map[string]bool{}, map[int]bool{}
	for i, v := range views {
		if errs[i] != nil {
			t.Fatalf("join %d: %v", i, errs[i])
		}
		if ids[v.PlaceID] || positions[v.Position] {
			t.Fatalf("two fans have place %s or position %d", v.PlaceID, v.Position)
		}
		ids[v.PlaceID], positions[v.Position] = true, true
	}
	if n := l.rdb.ZCard(t.Context(), l.own(room).keys[kWait]).Val(); int(n) != len(views) {
		t.Fatalf("%d places for %d fans", n, len(views))
	}
}

func TestJoinsUnderPressureShareRoundTrips(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	join(t, l, room, "warm")
	if err := l.Leave(t.Context(), room, join(t, l, room, "warm").Token); err != nil {
		t.Fatal(err)
	}
	c := &calls{}
	rdb.AddHook(c)
	views, errs := rush(t, l, room, 2000)
	onePlaceEach(t, l, room, views, errs)
	if trips := c.n.Load(); trips > 2000/4 {
		t.Errorf("2000 joins at once took %d round trips", trips)
	}
	eventually(t, 10*time.Second, "all flights have landed", func() bool {
		l.own(room).together.mu.Lock()
		defer l.own(room).together.mu.Unlock()
		return l.own(room).together.flying == 0 && l.own(room).together.waiting == nil
	})
}

// A join alone waits for nobody and goes in no pipeline.
func TestAJoinAloneGoesAtOnce(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	join(t, l, room, "warm")
	c := &calls{}
	rdb.AddHook(c)
	for i := range 10 {
		join(t, l, room, fmt.Sprintf("alone-%d", i))
	}
	if c.n.Load() != 10 {
		t.Errorf("10 joins took %d round trips", c.n.Load())
	}
}

// An emptied script cache costs no join, however often it is emptied meanwhile.
func TestAnEmptiedScriptCacheCostsNoJoin(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = rdb.ScriptFlush(ctx)
		}
	})
	views, errs := rush(t, l, room, 1500)
	stop()
	wg.Wait()
	onePlaceEach(t, l, room, views, errs)
}

// fly sends the calls as one batch.
func fly(r *room, calls ...*call) {
	r.together.flying++
	r.together.fly(calls)
}

func joining(t testing.TB, l *Line, room, fan string) *call {
	t.Helper()
	p, err := l.identify(room, Fan{ID: fan})
	if err != nil {
		t.Fatal(err)
	}
	r := l.own(room)
	return &call{ctx: t.Context(), script: joinScript, keys: r.keys, done: make(chan struct{}), args: []any{
		p.member[:], 0, micros(l.opts.ClaimWindow), keptMissed, "", 0, l.witness(r), "", 0, keptGone,
	}}
}

func TestABadReplySpoilsNoNeighbour(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	good, other, broken := openRoom(t, l, 0, 1), openRoom(t, l, 0, 1), openRoom(t, l, 0, 1)
	if err := rdb.Set(t.Context(), l.own(broken).keys[kWait], "no line", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"warm", "cold"} {
		if err := l.loadScripts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if cache == "cold" {
			rdb.ScriptFlush(t.Context())
		}
		batch := []*call{
			joining(t, l, broken, "x"+cache), joining(t, l, good, "a"+cache), joining(t, l, broken, "y"+cache),
			joining(t, l, good, "b"+cache), joining(t, l, other, "c"+cache),
		}
		fly(l.own(good), batch...)
		for i, c := range batch {
			<-c.done
			reply, _ := c.reply.([]any)
			if bad := i == 0 || i == 2; bad != (c.err != nil) || !bad && text(reply, 0) != "waiting" {
				t.Errorf("%s cache, call %d: %v, %v", cache, i, c.reply, c.err)
			}
		}
	}
	if n := rdb.ZCard(t.Context(), l.own(good).keys[kWait]).Val(); n != 4 {
		t.Errorf("%d places, want 4", n)
	}
}

// When replies are lost on the way, their fans are told so; asking again finds the
// place that was made, and nobody has two.
func TestQ14_LostRepliesOfABatch(t *testing.T) {
	t.Parallel()
	p := proxyTo(t, devstacktest.OwnRedis(t).URL)
	l := newLine(t, through(t, p))
	room := openRoom(t, l, 0, 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ; n = n%5 + 1 {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				p.CutReply(n)
			}
		}
	})
	views, errs := rush(t, l, room, 1000)
	close(stop)
	wg.Wait()
	p.CutReply(0)
	lost := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		if lost++; !errors.Is(err, ErrStale) {
			t.Fatalf("join %d: %v", i, err)
		}
	}
	if p.Lost() == 0 || lost == 0 {
		t.Fatalf("%d replies were cut, %d joins noticed: nothing was tried", p.Lost(), lost)
	}
	for i := range views {
		again := join(t, l, room, fmt.Sprintf("rush-%d", i))
		if errs[i] == nil && again.PlaceID != views[i].PlaceID {
			t.Fatalf("fan %d has another place now", i)
		}
		views[i], errs[i] = again, nil
	}
	onePlaceEach(t, l, room, views, errs)
}

// A caller is kept no longer than it asked, and takes nobody along.
func TestATiredCallerLeavesTheOthers(t *testing.T) {
	t.Parallel()
	p := proxyTo(t, devstacktest.OwnRedis(t).URL)
	l := newLine(t, through(t, p))
	room := openRoom(t, l, 0, 1)
	join(t, l, room, "warm")
	p.Stall()
	const n = 60
	var tired, served atomic.Int64
	var wg sync.WaitGroup
	resumed := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			patience := 30 * time.Second
			if i%2 == 0 {
				patience = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			start := time.Now()
			_, err := l.Join(ctx, room, Fan{ID: fmt.Sprintf("fan-%d", i)})
			switch {
			case err == nil:
				served.Add(1)
			case i%2 == 0 && errors.Is(err, ErrStale) && time.Since(start) < 10*time.Second:
				if tired.Add(1) == n/2 {
					close(resumed)
				}
			case i%2 == 1 && errors.Is(err, ErrStale): // it was under way in a batch that timed out
				served.Add(1)
			default:
				t.Errorf("join %d after %s: %v", i, time.Since(start), err)
			}
		})
	}
	select {
	case <-resumed:
	case <-time.After(30 * time.Second):
		t.Error("the impatient still wait")
	}
	p.Resume()
	wg.Wait()
	if tired.Load() != n/2 || served.Load() != n/2 {
		t.Errorf("%d gave up and %d were answered, of %d", tired.Load(), served.Load(), n)
	}
	join(t, l, room, "afterwards")
}

func TestCallsThatNobodyWillSendSoonAreRefused(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 1)
	join(t, l, room, "warm")
	l.own(room).together.flying, l.own(room).together.waiting = flights, make([]*call, queueMost)
	if _, err := l.Join(t.Context(), room, Fan{ID: "one too many"}); !errors.Is(err, errBusy) || !errors.Is(err, ErrStale) {
		t.Fatalf("one too many: %v", err)
	}
}
