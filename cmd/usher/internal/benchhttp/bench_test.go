package benchhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/redis/go-redis/v9"

	"usher/internal/devstack/devstacktest"
	"usher/queue"
)

// helloEnv makes this very binary serve a hello-world of so many bytes.
const helloEnv = "USHER_BENCH_HELLO"

func TestMain(m *testing.M) {
	if size, err := strconv.Atoi(os.Getenv(helloEnv)); err == nil {
		hello(size)
		return
	}
	os.Exit(devstacktest.Main(m))
}

// hello is what a poll is compared with: Fiber as it comes, and a JSON document.
func hello(size int) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	type doc struct {
		Message string `json:"message"`
	}
	text := strings.Repeat("x", size-len(`{"message":""}`))
	app.Get("/v1/rooms/:room/place", func(c *fiber.Ctx) error { return c.JSON(doc{Message: text}) })
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(ln.Addr())
	go func() { // ends with its parent
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	panic(app.Listener(ln))
}

func benching(t *testing.T) {
	t.Helper()
	if os.Getenv("USHER_BENCH") == "" {
		t.Skip("a benchmark: make bench")
	}
}

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

// child is a server process on one processor.
type child struct {
	addr string
	pid  int
}

func start(t *testing.T, env []string, name string, args ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "USHER_") })
	cmd.Env = append(append(cmd.Env, "GOMAXPROCS=1"), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = in.Close(), cmd.Process.Kill(), cmd.Wait() })
	return cmd, out
}

func startHello(t *testing.T, size int) child {
	t.Helper()
	cmd, out := start(t, []string{helloEnv + "=" + strconv.Itoa(size)}, os.Args[0])
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return child{addr: strings.TrimSpace(line), pid: cmd.Process.Pid}
}

// startEdge runs usher edge beside a Redis of its own, with one room, and a line of the
// same process here that ships what the bridge would.
func startEdge(t *testing.T, env ...string) (child, *queue.Line) {
	t.Helper()
	url := devstacktest.OwnRedis(t).URL
	secret := strings.Repeat("s", 32)
	ro, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(ro)
	t.Cleanup(func() { _ = rdb.Close() })
	line, err := queue.New(rdb, queue.Options{PlaceSecrets: [][]byte{[]byte(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := line.PutSettings(t.Context(), queue.Settings{
		Room: "bench", Title: "The Salt Road", Mode: "fifo", State: "open", RatePerMinute: 600, Cap: 200, Run: 1, Version: 1, BookingURL: "http://booking.test",
	}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "usher")
	if out, err := exec.Command("go", "build", "-o", binary, "usher/cmd/usher").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if out, err := exec.Command(binary, "keys", "new", "--file="+dir+"/keys.json").CombinedOutput(); err != nil {
		t.Fatalf("keys: %v\n%s", err, out)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close()
	config := filepath.Join(dir, "usher.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
log: {level: error}
edge: {addr: %q, secureCookies: false, placeSecrets: [%s], proof: {mode: "off"}}
booking: {publicURL: "http://booking.test"}
admin: {addr: "127.0.0.1:0"}
redis: {url: %q}
pass: {keysFile: keys.json}
`, addr, secret, url), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _ := start(t, env, binary, "edge", "--config="+config)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if status, _, err := get(addr, "/v1/rooms/bench", ""); err == nil && status == 200 {
			return child{addr: addr, pid: cmd.Process.Pid}, line
		}
		if time.Now().After(deadline) {
			t.Fatal("the edge does not answer")
		}
	}
}

func request(path, token string) []byte {
	if token != "" {
		token = "Authorization: Bearer " + token + "\r\n"
	}
	return []byte("GET " + path + " HTTP/1.1\r\nHost: edge\r\n" + token + "\r\n")
}

func get(addr, path, token string) (status int, body []byte, err error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(request(path, token)); err != nil {
		return 0, nil, err
	}
	return answer(bufio.NewReader(conn), nil)
}

// answer reads one response, as sparingly as it can; the body lies in buf.
func answer(r *bufio.Reader, buf []byte) (status int, body []byte, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		switch {
		case first:
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, nil, err
			}
		case len(line) == 2:
			if cap(buf) < length {
				buf = make([]byte, length)
			}
			_, err = io.ReadFull(r, buf[:length])
			return status, buf[:length], err
		case len(line) > 16 && bytes.EqualFold(line[:15], []byte("content-length:")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[15:]))); err != nil {
				return 0, nil, err
			}
		}
	}
}

// cpu is the processor time a process has used.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, _ := strconv.Atoi(f[11]) // in hundredths of a second
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// load asks for a while on so many connections, and returns answers a second of the
// clock and of the server's processor.
func load(t *testing.T, c child, conns int, long time.Duration, requests [][]byte) (served, perCPU float64) {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	before, begin := cpu(t, c.pid), time.Now()
	end := begin.Add(long)
	for i := range conns {
		wg.Go(func() {
			conn, err := net.DialTimeout("tcp", c.addr, 5*time.Second)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			r, buf := bufio.NewReader(conn), make([]byte, 4<<10)
			for k := i; time.Now().Before(end); k++ {
				if _, err := conn.Write(requests[k%len(requests)]); err != nil {
					t.Error(err)
					return
				}
				status, _, err := answer(r, buf)
				if err != nil || status != 200 {
					t.Error(errors.Join(err, fmt.Errorf("status %d", status)))
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	used := cpu(t, c.pid) - before
	return float64(n.Load()) / took.Seconds(), float64(n.Load()) / used.Seconds()
}

// A poll of a place far back, answered from memory, against a JSON hello-world of the
// same length served by Fiber to the same requests, each on one processor.
func TestBenchPoll(t *testing.T) {
	benching(t)
	edge, line := startEdge(t)
	var polls [][]byte
	size := 0
	for i := range 2000 {
		v, err := line.Join(t.Context(), "bench", queue.Fan{ID: fmt.Sprintf("fan-%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		polls = append(polls, request("/v1/rooms/bench/place?shown="+v.Shown().String(), string(v.Token)))
	}
	time.Sleep(2 * time.Second) // the next boards know them all
	v, err := line.Join(t.Context(), "bench", queue.Fan{ID: "fan-1000"})
	if err != nil {
		t.Fatal(err)
	}
	status, body, err := get(edge.addr, "/v1/rooms/bench/place?shown="+v.Shown().String(), string(v.Token))
	if err != nil || status != 200 {
		t.Fatalf("%d %s %v", status, body, err)
	}
	size = len(body)
	greeter := startHello(t, size)
	const rounds, conns, long = 7, 32, 1500 * time.Millisecond
	load(t, edge, conns, long, polls) // warm: every token verified once
	load(t, greeter, conns, long, polls)
	var a, b, ratio, wall []float64
	for range rounds {
		wa, ca := load(t, edge, conns, long, polls)
		wb, cb := load(t, greeter, conns, long, polls)
		a, b, ratio, wall = append(a, ca), append(b, cb), append(ratio, ca/cb), append(wall, wa/wb)
	}
	table(fmt.Sprintf("poll: answers of %d bytes on one processor, %d rounds in turns, medians", size, rounds),
		[]string{"", "a CPU second"},
		[]string{"usher edge, GET …/place", fmt.Sprintf("%.0f", median(a))},
		[]string{"Fiber, a JSON hello-world", fmt.Sprintf("%.0f", median(b))},
		[]string{"ratio (at least 0.8)", fmt.Sprintf("%.2f", median(ratio))},
		[]string{"ratio by the clock, client on the same machine", fmt.Sprintf("%.2f", median(wall))},
	)
	if median(ratio) < 0.8 {
		t.Errorf("a poll is served at %.2f of a hello-world, less than 0.8", median(ratio))
	}
}
