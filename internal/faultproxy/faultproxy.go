// Package faultproxy stands between a test's client and a server, and does to the
// connection what networks and failovers do: it cuts replies, stalls, holds half-open
// connections, and points to another server. It knows no protocol.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// Proxy listens on a loopback port of its own. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	wait     sync.WaitGroup
	cutAfter atomic.Int64 // > 0: that many replies from now one is lost
	lost     atomic.Int64

	mu      sync.Mutex
	target  string
	conns   map[net.Conn]bool
	stalled chan struct{} // nil, or closed when the stall is over
	closed  bool
}

// New starts a proxy to target: a TCP address, or unix:///path as devstack gives it.
// Close ends it.
func New(target string) (*Proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{listener: l, target: target, conns: map[net.Conn]bool{}}
	p.wait.Go(p.accept)
	return p, nil
}

// Addr is where to connect to, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Point sends new connections to another server and cuts those there are.
func (p *Proxy) Point(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.Cut()
}

// Cut closes every connection at once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// CutReply loses one reply: the n-th from now (1 is the next) is read from the server,
// which has done the work, and its connection closed in its stead. Lost counts them.
func (p *Proxy) CutReply(n int) { p.cutAfter.Store(int64(n)) }

// Lost is how many replies were cut.
func (p *Proxy) Lost() int { return int(p.lost.Load()) }

// Stall lets nothing through in either direction, on connections that stay open;
// Resume lets all of it through.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// Resume ends a stall.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

// Close ends the proxy and every connection, and waits for its goroutines.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Resume()
	p.Cut()
	p.wait.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wait.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer p.forget(client)
	if !p.keep(client) {
		return
	}
	server, err := p.dial()
	if err != nil {
		return // as a server that is away refuses
	}
	defer p.forget(server)
	if !p.keep(server) {
		return
	}
	done := make(chan struct{})
	p.wait.Go(func() {
		defer close(done)
		p.pump(server, client, false)
		_ = client.Close()
		_ = server.Close()
	})
	p.pump(client, server, true)
	_ = client.Close()
	_ = server.Close()
	<-done
}

// pump copies until either end closes; replies tells the direction. One read is taken
// for one reply, which holds for a client that awaits each before it sends the next.
func (p *Proxy) pump(to io.Writer, from io.Reader, replies bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.pause()
			if replies && p.cutAfter.Load() > 0 && p.cutAfter.Add(-1) == 0 {
				p.lost.Add(1)
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) pause() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

func (p *Proxy) dial() (net.Conn, error) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	if target == "" {
		return nil, errors.New("faultproxy: points nowhere")
	}
	network, addr := "tcp", target
	if path, ok := strings.CutPrefix(target, "unix://"); ok {
		network, addr = "unix", path
	}
	return (&net.Dialer{}).DialContext(context.Background(), network, addr)
}

func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return !p.closed
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}
