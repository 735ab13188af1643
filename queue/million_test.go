package queue

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// fill joins the fans from one number to another by the way every fan joins, and keeps
// the token of each of `every`.
func fill(t testing.TB, l *Line, room string, from, to, every int) (tokens []Token, took time.Duration) {
	t.Helper()
	var next atomic.Int64
	next.Store(int64(from))
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now()
	for range 512 {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= to && !t.Failed(); i = int(next.Add(1)) {
				v, err := l.Join(context.Background(), room, Fan{ID: "fan-" + strconv.Itoa(i)})
				if err != nil {
					t.Errorf("join: %v", err)
					return
				}
				if i%every == 0 {
					mu.Lock()
					tokens = append(tokens, v.Token)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return tokens, time.Since(start)
}

func info(t testing.TB, rdb *redis.Client, section, key string) string {
	t.Helper()
	m := rdb.InfoMap(t.Context(), strings.ToLower(section))
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	return m.Item(section, key)
}

func usedMemory(t testing.TB, rdb *redis.Client) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(info(t, rdb, "Memory", "used_memory"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// inRedis is what the script takes in Redis by its own clock, mean of n runs, and
// the median of the whole step here.
func inRedis(t testing.TB, rdb *redis.Client, n int, step func() error) (script, here time.Duration) {
	t.Helper()
	rdb.ConfigResetStat(t.Context())
	took := make([]float64, n)
	for i := range took {
		start := time.Now()
		if err := step(); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(start).Seconds()
	}
	_, text, _ := strings.Cut(info(t, rdb, "Commandstats", "cmdstat_evalsha"), "usec_per_call=")
	text, _, _ = strings.Cut(text, ",")
	us, err := strconv.ParseFloat("0"+text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(us * float64(time.Microsecond)), time.Duration(median(took) * float64(time.Second))
}

// pollCost is what a poll from memory takes here, for tokens from all over the line.
func pollCost(t testing.TB, l *Line, room string, tokens []Token) float64 {
	t.Helper()
	const polls = 200_000
	start := time.Now()
	for i := range polls {
		var v View
		if !l.Recall(&v, room, tokens[i%len(tokens)], Shown{}) {
			t.Fatal("memory does not know the place")
		}
	}
	return float64(time.Since(start).Nanoseconds()) / polls
}

// slowness counts scripts slower than 5 ms, and the seconds all of them took.
type slowness struct{ times, seconds float64 }

func (s slowness) rate() float64 { return s.times / max(s.seconds, 1e-9) }

// add runs something, and counts the slow ones of a script in it.
func (s *slowness) add(t testing.TB, l *Line, name string, run func()) {
	t.Helper()
	l.rdb.Do(t.Context(), "SLOWLOG", "RESET")
	l.rdb.Do(t.Context(), "CONFIG", "RESETSTAT")
	run()
	s.times += float64(len(slowScripts(t, l)[name]))
	s.seconds += scriptSeconds(t, l)
}

// adding only adds numbers, for about as long as a join takes: where it is slow, the
// machine has taken the processor away.
var adding = script{name: "adding", Script: redis.NewScript(`local x = 0 for i = 1, 6000 do x = x + i end return { x }`)}

// addUp calls it as joins are called.
func addUp(t testing.TB, l *Line, calls int) {
	t.Helper()
	ctx := context.Background()
	none := l.own("none")
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 512 {
		wg.Go(func() {
			for next.Add(1) <= int64(calls) && !t.Failed() {
				if _, err := l.runTogether(ctx, none, adding, []string{"usher:{none}:none"}); err != nil {
					t.Errorf("adding: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func scriptSeconds(t testing.TB, l *Line) float64 {
	t.Helper()
	stats := l.rdb.Info(t.Context(), "commandstats").Val()
	_, text, _ := strings.Cut(stats, "cmdstat_evalsha:calls=")
	_, text, _ = strings.Cut(text, "usec=")
	text, _, _ = strings.Cut(text, ",")
	us, err := strconv.ParseFloat(text, 64)
	if err != nil || us == 0 {
		t.Fatalf("no script was counted: %q", stats)
	}
	return us / 1e6
}

// slowScripts are the slow log's scripts by name; "?" for one that is not ours.
func slowScripts(t testing.TB, l *Line) map[string][]time.Duration {
	t.Helper()
	named := map[string]string{}
	for _, s := range allScripts {
		named[s.Hash()] = s.name
	}
	slow := map[string][]time.Duration{}
	log, err := l.rdb.(*redis.Client).SlowLogGet(t.Context(), 10_000).Result() //nolint:errcheck,forcetypeassert // it was dialled here
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range log {
		if len(s.Args) < 2 || !strings.HasPrefix(strings.ToUpper(s.Args[0]), "EVAL") {
			continue
		}
		name := named[s.Args[1]]
		if name == "" {
			name = "?"
		}
		slow[name] = append(slow[name], s.Duration)
	}
	return slow
}

// TestMillion puts as many fans in line as USHER_MILLION says and holds what they cost
// against the bounds. make million runs it.
func TestMillion(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("USHER_MILLION"))
	if err != nil || n < 20_000 {
		t.Skip("a measurement of 20,000 fans or more: make million")
	}
	rdb := ownRedis(t)
	if err := rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", "5000").Err(); err != nil {
		t.Fatal(err)
	}
	rdb.ConfigSet(t.Context(), "slowlog-max-len", "10000")
	l := newLine(t, rdb)
	if err := l.loadScripts(t.Context()); err != nil {
		t.Fatal(err)
	}
	small, big := openRoom(t, l, 0, 1), openRoom(t, l, 0, 1)
	if err := adding.Load(t.Context(), rdb).Err(); err != nil {
		t.Fatal(err)
	}
	fewTokens, _ := fill(t, l, small, 0, 10_000, 10)
	refresh(t, l, small)
	refresh(t, l, big)
	before := usedMemory(t, rdb)
	var (
		machine, joins slowness
		tokens         []Token
		filled         time.Duration
	)
	const parts = 20 // in turns, as a machine has better and worse moments
	for i := range parts {
		joins.add(t, l, "join", func() {
			some, took := fill(t, l, big, i*n/parts, (i+1)*n/parts, n/1000)
			tokens, filled = append(tokens, some...), filled+took
		})
		machine.add(t, l, "?", func() { addUp(t, l, n/parts/2) })
	}
	each := (usedMemory(t, rdb) - before) / float64(n)
	rdb.Do(t.Context(), "SLOWLOG", "RESET")

	r := l.own(big)
	board, boardHere := inRedis(t, rdb, 30, func() error { return l.refresh(t.Context(), r) })
	refresh(t, l, small)
	if got := r.board.Load().view.Waiting; got != n {
		t.Fatalf("%d wait, want %d", got, n)
	}
	var few, many []float64
	pollCost(t, l, small, fewTokens) // warm
	pollCost(t, l, big, tokens)
	for range 7 {
		few, many = append(few, pollCost(t, l, small, fewTokens)), append(many, pollCost(t, l, big, tokens))
	}
	var ratios []float64
	for i := range few {
		ratios = append(ratios, many[i]/few[i])
	}
	// The call with all it may have to do: a rate beyond any, and slots for all.
	set(t, l, big, func(s *Settings) { s.RatePerMinute, s.Cap = 1_000_000, min(n, 1_000_000) }) // the most a room may have
	report(t, l, big)
	call, callHere := inRedis(t, rdb, 30, func() error { return l.call(t.Context(), r) })
	others := 0
	for name, took := range slowScripts(t, l) {
		t.Logf("slower than 5 ms: %s %d times, at worst %s", name, len(took), slices.Max(took))
		others += len(took)
	}

	tick, every := l.opts.Tick, l.opts.BoardEvery
	broken := []string{}
	bound := func(ok bool, what string) string {
		if ok {
			return "ok"
		}
		broken = append(broken, what)
		return "BROKEN"
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
	poll := median(ratios)
	table(fmt.Sprintf("%d fans in one line, filled by joins in %s (%.0f a second)", n, filled.Round(time.Second), float64(n)/filled.Seconds()),
		[]string{"", "is", "at most", ""},
		// A hash table doubles at powers of two: the bound is one for a million.
		[]string{"Redis' memory, a fan", fmt.Sprintf("%.1f B", each), "135 B", bound(each <= 135 || n != 1_000_000, "memory a fan")},
		[]string{"looks and calls slower than 5 ms (SLOWLOG)", strconv.Itoa(others), "0", bound(others == 0, "slow scripts")},
		[]string{"this machine: adding slower than 5 ms, a second of it", fmt.Sprintf("%.2f", machine.rate()), "", ""},
		[]string{"joins slower than 5 ms, a second of them", fmt.Sprintf("%.2f", joins.rate()), fmt.Sprintf("%.2f", 2*machine.rate()+0.5), bound(joins.rate() <= 2*machine.rate()+0.5, "slow joins")},
		[]string{"a look at the board, in Redis", ms(board), "5 ms", bound(board <= 5*time.Millisecond, "the board's script")},
		[]string{"a look at the board, here", ms(boardHere), every.String(), bound(boardHere <= every, "the board")},
		[]string{"a step of calls, each script, in Redis", ms(call), "5 ms", bound(call <= 5*time.Millisecond, "the call's script")},
		[]string{"a step of calls, here", ms(callHere), tick.String(), bound(callHere <= tick, "the call tick")},
		[]string{"a poll from memory, 10,000 waiting", fmt.Sprintf("%.0f ns", median(few)), "", ""},
		[]string{fmt.Sprintf("a poll from memory, %d waiting", n), fmt.Sprintf("%.0f ns", median(many)), "", ""},
		[]string{"… as a multiple", fmt.Sprintf("%.2f", poll), "1.20", bound(poll <= 1.2, "poll cost")},
	)
	if slices.Sort(broken); len(broken) > 0 {
		t.Errorf("broken: %s", strings.Join(broken, ", "))
	}
}
