package queue

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"usher/queue/limits"
)

func toll(addr string, change ...func(*limits.Toll)) *limits.Toll {
	t := &limits.Toll{Address: addr, MarkLife: time.Minute}
	for _, f := range change {
		f(t)
	}
	return t
}

// perMinute is so slow that nothing drips out of a bucket while a test runs.
func perMinute(burst int) limits.Rate { return limits.Rate{PerMinute: 1, Burst: burst} }

func refusedBy(err error) string {
	var r *limits.RefusedError
	if errors.As(err, &r) && r.RetryAfter > 0 {
		return r.Bucket
	}
	return fmt.Sprint(err)
}

func TestQ20_AFullBucketRefusesNewPlacesAndNothingElse(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 1)
	rates := func(r *limits.Toll) {
		r.Rates = limits.Rates{PerAddress: perMinute(5), PerBlock: perMinute(8), PerRoom: perMinute(10)}
	}
	try := func(fan, addr string) error {
		_, err := l.Join(t.Context(), room, Fan{ID: fan, Toll: toll(addr, rates)})
		return err
	}
	for i := range 5 {
		if err := try(fmt.Sprint("a", i), "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := refusedBy(try("a5", "192.0.2.1")); got != limits.Address {
		t.Errorf("the sixth of an address: %s", got)
	}
	if err := try("a0", "192.0.2.1"); err != nil {
		t.Errorf("who has a place: %v", err)
	}
	for i := range 3 {
		if err := try(fmt.Sprint("b", i), "192.0.2.2"); err != nil {
			t.Errorf("a neighbour: %v", err)
		}
	}
	for range 20 { // what is refused is charged to nobody
		if got := refusedBy(try("b3", "192.0.2.3")); got != limits.Block {
			t.Fatalf("the ninth of a block: %s", got)
		}
	}
	for i := range 2 {
		if err := try(fmt.Sprint("c", i), fmt.Sprintf("2001:db8:%d::1", i)); err != nil {
			t.Errorf("another block: %v", err)
		}
	}
	if got := refusedBy(try("c2", "2001:db8:2::1")); got != limits.Room {
		t.Errorf("the eleventh of the room: %s", got)
	}
	if v := refresh(t, l, room).view.Waiting; v != 10 {
		t.Errorf("%d wait", v)
	}
}

func TestQ20_AFanWhoLeavesAgainAndAgainIsLimited(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 1)
	fan := Fan{ID: "f", Toll: toll("", func(r *limits.Toll) { r.Rates.PerFan = perMinute(3) })}
	for i := range 5 {
		v, err := l.Join(t.Context(), room, fan)
		if i == 4 { // the first place was nobody's again
			if refusedBy(err) != limits.Fan {
				t.Errorf("back for the fourth time: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Leave(t.Context(), room, v.Token); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQ20_PressureAsksForAProofAndRisesWithEachPlace(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 1)
	try := func(n int, covers float64) error {
		_, err := l.Join(t.Context(), room, Fan{ID: fmt.Sprint(n), Toll: toll("198.51.100.7", func(r *limits.Toll) {
			r.Calm.PerAddress = perMinute(3)
			if r.Covers = covers; covers > 0 {
				r.Mark = fmt.Sprint("m", n)
			}
		})})
		return err
	}
	for n := range 3 {
		if err := try(n, 0); err != nil {
			t.Fatalf("a free place: %v", err)
		}
	}
	last := 0.0
	for n := 3; n < 100; n++ {
		var p *limits.ProofError
		if err := try(n, 0); !errors.As(err, &p) {
			t.Fatalf("place %d without a proof: %v", n, err)
		}
		if p.Pressure < 1 || p.Pressure < last || p.Pressure > 16.5 {
			t.Fatalf("place %d: pressure %v after %v", n, p.Pressure, last)
		}
		if last = p.Pressure; n > 10 {
			if err := try(n, last/2); !errors.As(err, &p) {
				t.Fatalf("half of what is needed: %v", err)
			}
		}
		if err := try(n, last+0.1); err != nil {
			t.Fatalf("place %d with a proof: %v", n, err)
		}
	}
	if last < 15.5 {
		t.Errorf("the last pressure was %v", last)
	}
	var p *limits.ProofError // another address is not under pressure; one that must always pay is
	if _, err := l.Join(t.Context(), room, Fan{ID: "x", Toll: toll("203.0.113.1")}); err != nil {
		t.Errorf("another address: %v", err)
	}
	if _, err := l.Join(t.Context(), room, Fan{ID: "y", Toll: toll("203.0.113.1", func(r *limits.Toll) { r.Least = 1 })}); !errors.As(err, &p) || p.Pressure != 1 {
		t.Errorf("always: %v", err)
	}
}

func TestQ20_AMarkIsTakenOnceByAHundredAtOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 1)
	var wg sync.WaitGroup
	var won, used atomic.Int64
	start := make(chan struct{})
	for i := range 100 {
		wg.Go(func() {
			<-start
			_, err := l.Join(t.Context(), room, Fan{ID: fmt.Sprint(i), Toll: toll("", func(r *limits.Toll) { r.Mark, r.Covers, r.Least = "m", 9, 1 })})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, limits.ErrUsed):
				used.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != 1 || used.Load() != 99 {
		t.Errorf("%d joined, %d were told it was used", won.Load(), used.Load())
	}
}

func TestAJoinWithATollIsOneCallAndSurvivesBeingSentTwice(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	fan := Fan{ID: "f", Toll: toll("192.0.2.9", func(r *limits.Toll) {
		r.Rates, r.Mark, r.Covers, r.Least = limits.Rates{PerFan: perMinute(1), PerAddress: perMinute(1), PerRoom: perMinute(1)}, "m", 1, 1
	})}
	join(t, l, room, "warm") // the board, and the script's cache
	var n calls
	rdb.AddHook(&n)
	first, err := l.Join(t.Context(), room, fan)
	if err != nil || n.n.Load() != 1 {
		t.Fatalf("%d calls, %v", n.n.Load(), err)
	}
	again, err := l.Join(t.Context(), room, fan) // as go-redis does when the reply was cut
	if err != nil || again.Token != first.Token {
		t.Errorf("sent twice: %v", err)
	}
	// What is remembered goes by itself.
	keys, err := rdb.Keys(t.Context(), "usher:{"+room+"}:limit:*").Result()
	if err != nil || len(keys) != 2 {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, k := range append(keys, "usher:{"+room+"}:proof:m") {
		if ttl := rdb.PTTL(t.Context(), k).Val(); ttl <= 0 || ttl > 61*time.Second {
			t.Errorf("%s lives %s", k, ttl)
		}
	}
}

func TestAllowBoundsGuessesByAddressAndBlock(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""), func(o *Options) {
		o.Guesses = func(what string) limits.Rate {
			if what == "free" {
				return limits.Rate{}
			}
			return perMinute(2)
		}
	})
	room := openRoom(t, l, 0, 1)
	for i := range 4 {
		if got := refusedBy(l.Allow(t.Context(), room, "move", "192.0.2.1")); i < 2 && got != "<nil>" || i >= 2 && got != "move" {
			t.Errorf("try %d: %s", i, got)
		}
	}
	for i := 2; i < 40; i++ { // twenty of the block, two of which are gone
		if got := refusedBy(l.Allow(t.Context(), room, "move", fmt.Sprintf("192.0.2.%d", i))); i < 20 && got != "<nil>" || i >= 20 && got != "move" {
			t.Errorf("address %d: %s", i, got)
		}
	}
	if err := l.Allow(t.Context(), room, "move", "192.0.3.1"); err != nil {
		t.Error(err)
	}
	for range 9 {
		if err := l.Allow(t.Context(), room, "free", "192.0.2.1"); err != nil {
			t.Error(err)
		}
	}
	if err := l.Allow(t.Context(), "no-such-room", "move", "192.0.2.1"); !errors.Is(err, ErrUnknownRoom) {
		t.Error(err)
	}
}

// A missed call is forgiven without a proof and beside every limit: that place is not new.
func TestAForgivenPlaceCostsNothing(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 1)
	before := join(t, l, room, "f")
	keys := l.own(room).keys
	m, err := l.rdb.ZPopMin(t.Context(), keys[kWait]).Result()
	if err != nil || len(m) != 1 {
		t.Fatal(m, err)
	}
	if err := l.rdb.ZAdd(t.Context(), keys[kMissed], m[0]).Err(); err != nil {
		t.Fatal(err)
	}
	v, err := l.Join(t.Context(), room, Fan{ID: "f", Toll: toll("192.0.2.1", func(r *limits.Toll) {
		r.Least, r.Rates = 1, limits.Rates{PerRoom: limits.Rate{PerMinute: 1}} // a burst of one is taken by nobody
	})})
	if err != nil || v.Created || v.Token != before.Token {
		t.Errorf("%+v, %v", v, err)
	}
	var need *limits.ProofError
	if _, err := l.Join(t.Context(), room, Fan{ID: "g", Toll: toll("192.0.2.1", func(r *limits.Toll) { r.Least = 1 })}); !errors.As(err, &need) {
		t.Errorf("a new one: %v", err)
	}
}
