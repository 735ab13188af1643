package queue

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/internal/devstack/devstacktest"
)

// benching skips what only `make bench` runs.
func benching(t *testing.T) {
	t.Helper()
	if os.Getenv("USHER_BENCH") == "" {
		t.Skip("a benchmark: make bench")
	}
}

// table prints the rows of a benchmark, whatever the verbosity.
func table(title string, rows ...[]string) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", title)
	for _, r := range rows {
		fmt.Fprintf(&b, "  %-58s", r[0])
		for _, c := range r[1:] {
			fmt.Fprintf(&b, " %14s", c)
		}
		b.WriteByte('\n')
	}
	fmt.Print(b.String())
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// depth counts what a client's pipelines carry.
type depth struct{ trips, calls atomic.Int64 }

func (d *depth) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (d *depth) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (d *depth) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		d.trips.Add(1)
		d.calls.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// crush joins n fans by so many at a time, each waiting for its answer, and returns
// joins a second.
func crush(t testing.TB, l *Line, room string, n, atOnce int) float64 {
	t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range atOnce {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if _, err := l.Join(context.Background(), room, Fan{ID: "crush-" + strconv.FormatInt(i, 10)}); err != nil {
					t.Errorf("join: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// redisBenchmark runs the same script with the same arguments by Redis' own tool.
func redisBenchmark(t testing.TB, l *Line, url, room string, n, clients, pipeline int) float64 {
	t.Helper()
	args := []string{"-n", strconv.Itoa(n), "-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline), "-r", "2000000000", "--csv"}
	if path, ok := strings.CutPrefix(url, "unix://"); ok {
		path, _, _ = strings.Cut(path, "?")
		args = append(args, "-s", path)
	} else {
		host, port, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(url, "/0"), "redis://"), ":")
		args = append(args, "-h", host, "-p", port)
	}
	r := l.own(room)
	args = append(args, "EVALSHA", joinScript.Hash(), strconv.Itoa(len(r.keys)))
	args = append(args, r.keys...)
	args = append(args, "join__rand_int__", "0", strconv.FormatInt(micros(l.opts.ClaimWindow), 10), strconv.Itoa(keptMissed), "", "0",
		l.witness(r), "", "0", strconv.Itoa(keptGone))
	out, err := exec.CommandContext(t.Context(), "redis-benchmark", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-benchmark: %v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	if len(fields) < 2 {
		t.Fatalf("redis-benchmark: %s", out)
	}
	rps, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		t.Fatalf("redis-benchmark: %s", out)
	}
	return rps
}

// A join, as the edge makes it under pressure, against redis-benchmark with the same
// script, arguments and pipelining. Both fill rooms of their own, in turns.
func TestBenchJoin(t *testing.T) {
	benching(t)
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		t.Skip("redis-benchmark is not here")
	}
	url := devstacktest.OwnRedis(t).URL
	rdb, sent := dial(t, url), &depth{}
	rdb.AddHook(sent)
	l := newLine(t, rdb)
	if err := l.loadScripts(t.Context()); err != nil {
		t.Fatal(err)
	}
	const rounds, n, atOnce = 5, 100_000, 512
	var ours, theirs, ratios, depths []float64
	for range rounds {
		sent.trips.Store(0)
		sent.calls.Store(0)
		mine := crush(t, l, openRoom(t, l, 0, 1), n, atOnce)
		each := float64(sent.calls.Load()) / float64(max(1, sent.trips.Load()))
		room := openRoom(t, l, 0, 1)
		their := redisBenchmark(t, l, url, room, n, flights, int(math.Round(each)))
		if got := l.rdb.ZCard(t.Context(), l.own(room).keys[kWait]).Val(); got < n*99/100 {
			t.Fatalf("redis-benchmark made %d places of %d", got, n)
		}
		ours, theirs, ratios, depths = append(ours, mine), append(theirs, their), append(ratios, mine/their), append(depths, each)
	}
	table(fmt.Sprintf("join: %d new places by %d fans at once, %d rounds in turns, medians", n, atOnce, rounds),
		[]string{"", "joins/s", "pipelining"},
		[]string{"Line.Join (verify, one round trip, sign)", fmt.Sprintf("%.0f", median(ours)), fmt.Sprintf("%.0f", median(depths))},
		[]string{"redis-benchmark, the same script", fmt.Sprintf("%.0f", median(theirs)), fmt.Sprintf("%.0f", median(depths))},
		[]string{"ratio (at least 0.5)", fmt.Sprintf("%.2f", median(ratios))},
	)
	if median(ratios) < 0.5 {
		t.Errorf("a join reaches %.2f of redis-benchmark, less than 0.5", median(ratios))
	}
}
