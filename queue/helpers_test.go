package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

var testSecret = bytes.Repeat([]byte("s"), 32)

// dial opens a client; url "" is the Redis shared by the tests of this binary.
func dial(t testing.TB, url string) *redis.Client {
	t.Helper()
	if url == "" {
		url = devstacktest.RedisURL(t)
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.ContextTimeoutEnabled = true
	o.PoolSize = 50
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ownRedis is for tests that run a Line's loops, which serve every room they find.
func ownRedis(t testing.TB) *redis.Client { return dial(t, devstacktest.OwnRedis(t).URL) }

func newLine(t testing.TB, rdb redis.UniversalClient, change ...func(*Options)) *Line {
	t.Helper()
	o := Options{PlaceSecrets: [][]byte{testSecret}, ReportTTL: time.Minute} // a slow machine is no stale report
	for _, f := range change {
		f(&o)
	}
	l, err := New(rdb, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openRoom configures a room of its own and gives it a fresh report.
func openRoom(t testing.TB, l *Line, rate, slots int, change ...func(*Settings)) string {
	t.Helper()
	s := Settings{
		Room: devstacktest.Name("room"), Title: "Hall", Mode: "fifo", State: "open",
		RatePerMinute: rate, Cap: slots, Run: 1, Version: 1, BookingURL: "http://booking.test",
	}
	for _, f := range change {
		f(&s)
	}
	if err := l.PutSettings(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	report(t, l, s.Room)
	return s.Room
}

// set changes a room's settings under the next version.
func set(t testing.TB, l *Line, room string, change func(*Settings)) {
	t.Helper()
	v, err := l.Room(room)
	if err != nil {
		t.Fatal(err)
	}
	s := Settings{
		Room: room, Title: v.Title, Mode: v.Mode, State: v.State, RatePerMinute: v.RatePerMinute, Cap: v.Cap,
		Run: v.Run, Version: v.Version + 1, BookingURL: v.BookingURL, Valve: v.Valve.Mode, PriorityShare: v.PriorityShare,
	}
	change(&s)
	if err := l.PutSettings(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func report(t testing.TB, l *Line, room string) {
	t.Helper()
	// An instant long past frees nothing: the tests that want that ship their own.
	if err := l.PutReport(t.Context(), room, Report{At: time.Unix(1, 0), Available: 5, Total: 9}); err != nil {
		t.Fatal(err)
	}
}

// run keeps the Lines going until the test ends, with fresh reports all the while.
func run(t testing.TB, room string, lines ...*Line) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, l := range lines {
		wg.Go(func() {
			if err := l.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = lines[0].PutReport(ctx, room, Report{At: time.Unix(1, 0)})
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func step(t testing.TB, l *Line, room string) {
	t.Helper()
	if err := l.call(t.Context(), l.own(room)); err != nil {
		t.Fatal(err)
	}
}

func refresh(t testing.TB, l *Line, room string) *board {
	t.Helper()
	r := l.own(room)
	if err := l.refresh(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.board.Load()
}

func join(t testing.TB, l *Line, room, fan string) View {
	t.Helper()
	v, err := l.Join(t.Context(), room, Fan{ID: fan})
	if err != nil {
		t.Fatalf("join %s: %v", fan, err)
	}
	return v
}

func status(t testing.TB, l *Line, room string, token Token) View {
	t.Helper()
	v, err := l.Status(t.Context(), room, token, 0)
	if err != nil {
		t.Fatalf("status: %v", err)
	}
	return v
}

func claim(t testing.TB, l *Line, room string, token Token) Admission {
	t.Helper()
	a, err := l.Claim(t.Context(), room, token)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	return a
}

// crowd joins n fans in order, in few round trips, and returns their tokens.
func crowd(t testing.TB, l *Line, room string, n int) []Token {
	t.Helper()
	r := l.own(room)
	if err := l.loadScripts(t.Context()); err != nil {
		t.Fatal(err)
	}
	tokens := make([]Token, 0, n)
	for from := 0; from < n; from += 1000 {
		pipe := l.rdb.Pipeline()
		places := make([]place, 0, 1000)
		cmds := make([]*redis.Cmd, 0, 1000)
		for i := from; i < min(from+1000, n); i++ {
			p, err := l.identify(room, Fan{ID: fmt.Sprintf("%s-%d", room, i)})
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, p)
			cmds = append(cmds, joinScript.EvalSha(t.Context(), pipe, r.keys, p.member[:], 0, micros(l.opts.ClaimWindow), keptMissed, "", 0, l.witness(r)))
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, p := range places {
			reply, err := cmds[i].Slice()
			if err != nil {
				t.Fatal(err)
			}
			p.score, p.run = number(reply, 1), int(number(reply, 4))
			tokens = append(tokens, l.sign(p))
		}
	}
	return tokens
}

// eventually waits for a condition; nothing here is measured by sleeping.
func eventually(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// slotsOf reads all slots of a room, by member.
func slotsOf(t testing.TB, l *Line, room string) map[string]slot {
	t.Helper()
	raw, err := l.rdb.HGetAll(t.Context(), l.own(room).keys[kSlots]).Result()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]slot{}
	for m, text := range raw {
		out[m] = parseSlot(text)
	}
	return out
}

func isStandBy(err error) bool {
	var s *StandByError
	return errors.As(err, &s)
}

// calls counts what a client sends.
type calls struct{ n atomic.Int64 }

func (c *calls) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n.Add(1); return next(ctx, cmd) }
}

func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.n.Add(1); return next(ctx, cmds) }
}

func z(score int64, m string) redis.Z { return redis.Z{Score: float64(score), Member: m} }
