package ssehub

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pairs makes connected sockets, as a server and its clients have them.
type pairs struct {
	t  testing.TB
	ln net.Listener
}

func newPairs(t testing.TB) *pairs {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return &pairs{t, ln}
}

func (p *pairs) dial() (server, client *net.TCPConn) {
	p.t.Helper()
	c, err := (&net.Dialer{}).DialContext(p.t.Context(), "tcp", p.ln.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := p.ln.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _, _ = c.Close(), s.Close() })
	return s.(*net.TCPConn), c.(*net.TCPConn) //nolint:errcheck,forcetypeassert // tcp is what was dialled
}

// open hands a connection over, as a server does: its own descriptor is closed then.
func (p *pairs) open(h *Hub) (*Stream, *bufio.Reader, *net.TCPConn) {
	p.t.Helper()
	server, client := p.dial()
	s, err := h.Take(server)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = server.Close()
	s.Begin([]byte("head\n"))
	r := bufio.NewReader(client)
	p.line(r, "head")
	return s, r, client
}

func (p *pairs) line(r *bufio.Reader, want string) {
	p.t.Helper()
	got, err := r.ReadString('\n')
	if err != nil || strings.TrimRight(got, "\n") != want {
		p.t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func newHub(t testing.TB, o Options) *Hub {
	t.Helper()
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	eventually(t, "the hub runs", h.Free)
	return h
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestAStreamTellsAndEnds(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 2}), newPairs(t)
	s, r, _ := p.open(h)
	if !s.Send(AppendEvent(nil, "place", []byte(`{"a":1}`))) {
		t.Fatal("a fresh stream is busy")
	}
	p.line(r, "event: place")
	p.line(r, `data: {"a":1}`)
	p.line(r, "")
	s.Close([]byte("bye\n"), Ended)
	s.Close([]byte("bye again\n"), Ended)
	p.line(r, "bye")
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the end: %v", err)
	}
	if s.Send([]byte("x")) || !s.Over() || h.Len() != 0 {
		t.Fatal("an ended stream is still there")
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 1}), newPairs(t)
	s, _, _ := p.open(h)
	server, _ := p.dial()
	if _, err := h.Take(server); !errors.Is(err, ErrFull) || h.Free() {
		t.Fatalf("one too many: %v", err)
	}
	s.Close(nil, Ended)
	again, err := h.Take(server)
	if err != nil {
		t.Fatalf("after one ended: %v", err)
	}
	again.Close(nil, Unopened)
	if _, err := h.Take(fake{}); err == nil {
		t.Fatal("took what is no socket")
	}
}

type fake struct{ net.Conn }

// A client that reads nothing keeps nobody waiting and is dropped.
func TestASlowClientIsDropped(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 2, Stall: 50 * time.Millisecond}), newPairs(t)
	slow, _, _ := p.open(h)
	quick, r, _ := p.open(h)
	big := []byte(strings.Repeat("x", 64<<10) + "\n")
	busy := false
	for range 1000 {
		start := time.Now()
		busy = !slow.Send(big)
		if time.Since(start) > 5*time.Second {
			t.Fatal("a send waited")
		}
		if busy {
			break
		}
	}
	if !busy {
		t.Fatal("64 MB were taken by nobody")
	}
	if !quick.Send([]byte("on time\n")) {
		t.Fatal("the other one is busy")
	}
	p.line(r, "on time")
	eventually(t, "the slow one is dropped", func() bool { slow.Send(big); return slow.Over() }) // the kernel may have taken the rest
	if quick.Over() {
		t.Fatal("the quick one was dropped too")
	}
}

// A client that takes an event in pieces gets it whole.
func TestWhatWasNotTakenComesLater(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 1, Stall: time.Minute}), newPairs(t)
	s, r, _ := p.open(h)
	big := []byte(strings.Repeat("x", 1<<20) + "\n")
	sent := 0
	for s.Send(big) {
		sent++
	}
	for range sent { // the last of them stands in part with the hub, whose sweep sends the rest
		got, err := r.ReadString('\n')
		if err != nil || len(got) != len(big) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	eventually(t, "the stream takes events again", func() bool { return s.Send([]byte("next\n")) })
	p.line(r, "next")
}

func TestAClientThatLeftIsNoticed(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 1}), newPairs(t)
	s, _, client := p.open(h)
	_ = client.Close()
	eventually(t, "the stream of a client that left ends", s.Over)
	eventually(t, "its room is free", h.Free)
}

func TestAStreamThatNeverBeginsIsGivenBack(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 1}), newPairs(t)
	server, _ := p.dial()
	s, err := h.Take(server)
	if err != nil {
		t.Fatal(err)
	}
	s.sweep(time.Now().Add(openWithin / 2))
	if s.Over() {
		t.Fatal("given back too early")
	}
	s.sweep(time.Now().Add(2 * openWithin))
	if !s.Over() || h.Len() != 0 {
		t.Fatal("not given back")
	}
	s.Begin([]byte("late")) // harmless
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 1, Heartbeat: 10 * time.Millisecond}), newPairs(t)
	_, r, _ := p.open(h)
	p.line(r, ":")
}

func TestADrainSpreadsTheReturn(t *testing.T) {
	t.Parallel()
	h, p := newHub(t, Options{Max: 300}), newPairs(t)
	readers := make([]*bufio.Reader, 200)
	for i := range readers {
		_, readers[i], _ = p.open(h)
	}
	h.Drain(20 * time.Second)
	field := regexp.MustCompile(`^retry: (\d+)\n\n$`)
	var quarters [4]int
	for _, r := range readers {
		rest, err := io.ReadAll(r)
		m := field.FindSubmatch(rest)
		if err != nil || m == nil {
			t.Fatalf("at the end %q, %v", rest, err)
		}
		ms, _ := strconv.Atoi(string(m[1]))
		if ms < 1000 || ms >= 21_000 {
			t.Fatalf("told to come back after %d ms", ms)
		}
		quarters[(ms-1000)/5000]++
	}
	for i, n := range quarters { // of 200 about 50 each; 20 is five standard errors away
		if n < 20 {
			t.Fatalf("quarter %d of the spread has %d of 200: %v", i, n, quarters)
		}
	}
	server, _ := p.dial()
	if _, err := h.Take(server); !errors.Is(err, ErrClosed) || h.Len() != 0 {
		t.Fatalf("a drained hub takes streams: %v", err)
	}
}
