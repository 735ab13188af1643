package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"usher/cmd/usher/internal/app"
	"usher/internal/devstack/devstacktest"
)

// binary is the program under test, built once with the race detector.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "usher-bin-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "usher")
	if out, err := exec.Command("go", "build", "-race", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Printf("go build: %v\n%s", err, out)
		return 1
	}
	return devstacktest.Main(m)
}

// lockedBuffer collects a process' output while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// process is one running usher.
type process struct {
	t         *testing.T
	cmd       *exec.Cmd
	out, errs lockedBuffer
	done      chan struct{}
	code      int
}

// start runs the binary; the test's end kills it if it still runs. A data race
// in it fails the test.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(cleanEnv(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if strings.Contains(p.errs.String(), "DATA RACE") {
			t.Errorf("a data race in usher %s:\n%s", strings.Join(args, " "), p.errs.String())
		}
		if t.Failed() {
			t.Logf("usher %s:\n%s\n%s", strings.Join(args, " "), p.out.String(), tail(p.errs.String()))
		}
	})
	return p
}

// cleanEnv keeps the developer's USHER_ variables away.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "USHER_") {
			env = append(env, kv)
		}
	}
	return env
}

func tail(s string) string {
	var kept []string
	for line := range strings.Lines(s) { // requests that went well explain nothing
		if !strings.Contains(line, `"msg":"request"`) || strings.Contains(line, `"status":5`) {
			kept = append(kept, line)
		}
	}
	s = strings.Join(kept, "")
	if len(s) > 3000 {
		return "…" + s[len(s)-3000:]
	}
	return s
}

// exits waits for the process and returns its exit code.
func (p *process) exits(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.code
	case <-time.After(within):
		p.t.Fatalf("still running after %s", within)
		return -1
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// usher runs a command to its end.
func usher(t *testing.T, env []string, args ...string) (out string, code int) {
	t.Helper()
	p := start(t, env, args...)
	code = p.exits(time.Minute)
	return p.out.String() + p.errs.String(), code
}

func mustUsher(t *testing.T, env []string, args ...string) string {
	t.Helper()
	out, code := usher(t, env, args...)
	if code != 0 {
		t.Fatalf("usher %s: exit %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// anyPorts lets every listener take a free port.
var anyPorts = []string{"--edge-addr=127.0.0.1:0", "--booking-addr=127.0.0.1:0", "--sandbox-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0"}

// startDev runs usher dev and waits until it is ready.
func startDev(t *testing.T, env []string, args ...string) (*process, app.DevReady) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	env = append(env, "XDG_CACHE_HOME="+t.TempDir())
	p := start(t, env, append(append([]string{"dev", "--log-level=info", "--ready-file=" + ready}, anyPorts...), args...)...)
	var doc app.DevReady
	p.until(time.Minute, "ready", func() bool {
		data, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(data, &doc) == nil
	})
	return p, doc
}

// until waits for a condition while the process lives.
func (p *process) until(within time.Duration, what string, ok func() bool) {
	p.t.Helper()
	deadline := time.After(within)
	for !ok() {
		select {
		case <-p.done:
			p.t.Fatalf("ended (exit %d) before: %s\n%s", p.code, what, tail(p.errs.String()))
		case <-deadline:
			p.t.Fatalf("waited %s for: %s", within, what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for: %s", within, what)
		}
	}
}

// reply is an HTTP answer and its JSON.
type reply struct {
	status int
	body   string
	doc    map[string]any
	header http.Header
}

func (r reply) text(key string) string {
	s, _ := r.doc[key].(string)
	return s
}

var client = &http.Client{
	Timeout:       20 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// send makes one call; err is what the transport said.
func send(ctx context.Context, method, url, token, body string, header ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	r := reply{status: res.StatusCode, body: string(data), header: res.Header}
	_ = json.Unmarshal(data, &r.doc)
	return r, err
}

// call makes one call that must answer with the status.
func call(t *testing.T, want int, method, url, token, body string, header ...string) reply {
	t.Helper()
	r, err := send(t.Context(), method, url, token, body, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	if r.status != want {
		t.Fatalf("%s %s: %d %s, want %d", method, url, r.status, r.body, want)
	}
	return r
}

// fan is one visit of a bare API client.
type fan struct{ edge, booking, room, place, pass, session string }

// admit joins, waits for the call, claims, and opens a session.
func admit(t *testing.T, edge, booking, room, key string) fan {
	t.Helper()
	f := fan{edge: edge, booking: booking, room: room}
	f.place = call(t, 201, "POST", edge+"/v1/rooms/"+room+"/places", "", "", "Idempotency-Key", key).text("token")
	f.claim(t)
	f.session = call(t, 201, "POST", booking+"/v1/sessions", "", `{"pass":"`+f.pass+`"}`).text("sessionToken")
	return f
}

func (f *fan) claim(t *testing.T) {
	t.Helper()
	eventually(t, 30*time.Second, "a pass", func() bool {
		r, err := send(t.Context(), "POST", f.edge+"/v1/rooms/"+f.room+"/pass", f.place, "")
		if err != nil {
			t.Fatal(err)
		}
		f.pass = r.text("pass")
		return r.status == 201
	})
}

// showtime is the id of the room's first showtime.
func showtime(t *testing.T, booking, room string) string {
	t.Helper()
	r := call(t, 200, "GET", booking+"/v1/showtimes?room="+room, "", "")
	list, _ := r.doc["showtimes"].([]any)
	if len(list) == 0 {
		t.Fatalf("no showtimes: %s", r.body)
	}
	first, _ := list[0].(map[string]any)
	id, _ := first["showtimeId"].(string)
	return id
}

// children lists the living processes whose parent is pid.
func children(t *testing.T, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, f := range stats {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // it has gone
		}
		// pid (name) state ppid …; the name may hold anything
		var child, parent int
		var state string
		at := bytes.LastIndexByte(data, ')')
		if _, err := fmt.Sscanf(string(data[at+1:]), "%s %d", &state, &parent); err != nil || state == "Z" {
			continue
		}
		if _, err := fmt.Sscanf(string(data), "%d", &child); err == nil && parent == pid {
			out = append(out, child)
		}
	}
	return out
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(data, []byte(") Z "))
}
