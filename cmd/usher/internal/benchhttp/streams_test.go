package benchhttp

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"usher/queue"
)

// rss is what a process has in memory, bytes.
func rss(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb * 1024
}

// listen opens a stream and reads its first event.
func listen(addr, token string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(request("/v1/rooms/bench/place/stream", token)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 1<<10)
	for {
		line, err := r.ReadString('\n')
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(line, "HTTP/1.1 ") && !strings.HasPrefix(line, "HTTP/1.1 200"):
			return nil, fmt.Errorf("%s", strings.TrimSpace(line))
		case strings.HasPrefix(line, "data: "):
			return conn, nil
		}
	}
}

// 10,000 fans with streams, all of them called and so looked up each second: what the
// process holds for each.
func TestBenchStreams(t *testing.T) {
	benching(t)
	n := 10_000
	if s := os.Getenv("USHER_BENCH_STREAMS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	edge, line := startEdge(t)
	if err := line.PutSettings(t.Context(), queue.Settings{ // where there is no line, everybody is called at once
		Room: "bench", Title: "The Salt Road", Mode: "passthrough", State: "open", RatePerMinute: 600, Cap: 200, Run: 1, Version: 2, BookingURL: "http://booking.test",
	}); err != nil {
		t.Fatal(err)
	}
	each := func(do func(i int) error) {
		t.Helper()
		var next atomic.Int64
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for i := int(next.Add(1)) - 1; i < n && !t.Failed(); i = int(next.Add(1)) - 1 {
					if err := do(i); err != nil {
						t.Errorf("%d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	tokens := make([]string, n)
	each(func(i int) error {
		v, err := line.Join(t.Context(), "bench", queue.Fan{ID: fmt.Sprintf("fan-%d", i)})
		tokens[i] = string(v.Token)
		return err
	})
	for range 50 { // what a process needs once, whatever the number of streams
		conn, err := listen(edge.addr, tokens[0])
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	time.Sleep(3 * time.Second)
	before := rss(t, edge.pid)
	conns := make([]net.Conn, n)
	start := time.Now()
	each(func(i int) (err error) {
		conns[i], err = listen(edge.addr, tokens[i])
		return err
	})
	opened := time.Since(start)
	used, begin := cpu(t, edge.pid), time.Now()
	time.Sleep(5 * time.Second)
	busy := (cpu(t, edge.pid) - used).Seconds() / time.Since(begin).Seconds()
	a := (rss(t, edge.pid) - before) / float64(n)
	for _, c := range conns {
		_ = c.Close()
	}
	table(fmt.Sprintf("streams: %d at once, opened in %s", n, opened.Round(100*time.Millisecond)),
		[]string{"", "is", "at most"},
		[]string{"memory of the process, a stream", fmt.Sprintf("%.0f B", a), "4096 B"},
		[]string{"processor while nothing happens and all are called", fmt.Sprintf("%.0f %%", 100*busy), ""},
	)
	if a > 4096 {
		t.Errorf("a stream costs %.0f bytes, more than 4096", a)
	}
}
