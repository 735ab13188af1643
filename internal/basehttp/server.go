package basehttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	_ "github.com/valyala/fasthttp" // by name: fiber asks for 1.51, which answers 200 to malformed chunks (GO-2026-4950)
	"golang.org/x/sys/unix"
)

// Options configure a Server; only Name is needed.
type Options struct {
	Name           string        // component in logs and metrics: edge, booking, sandbox, admin
	Log            *slog.Logger  // default slog.Default()
	BodyLimit      int           // bytes; default 64 kB
	ReadTimeout    time.Duration // default 10 s
	WriteTimeout   time.Duration // default 15 s; < 0 for a listener of streams
	IdleTimeout    time.Duration // default 60 s
	Concurrency    int           // most connections served at once; default 16,000
	TrustedProxies []string      // addresses or CIDRs whose X-Forwarded-For is believed; none by default
	Multipart      bool          // take multipart bodies; without it they are refused unread
	// Quiet names requests that get no line while they succeed, and hardly any
	// while they fail by the thousand.
	Quiet func(c *fiber.Ctx) bool
	// Observe, when set, is told of every finished request (for metrics); route
	// is the matched pattern, a closed set. It must copy what it keeps of the texts.
	Observe func(route, method string, status int, took time.Duration)
}

// Server is one HTTP listener: Fiber with Usher's limits, timeouts, error
// handler and access log. Routes are registered on App before Serve.
type Server struct {
	App  *fiber.App
	opts Options
	log  *slog.Logger
	ln   net.Listener

	express  func(ctx *fasthttp.RequestCtx) (route string)
	draining atomic.Bool
	failures failures
}

// NewServer builds a server; it neither listens nor starts anything.
func NewServer(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.BodyLimit == 0 {
		o.BodyLimit = 64 << 10
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = 10 * time.Second
	}
	switch {
	case o.WriteTimeout == 0:
		o.WriteTimeout = 15 * time.Second
	case o.WriteTimeout < 0:
		o.WriteTimeout = 0
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = time.Minute
	}
	if o.Concurrency == 0 {
		o.Concurrency = 16_000 // under the 20,000 descriptors a process gets
	}
	log := o.Log.With("component", o.Name)
	app := fiber.New(fiber.Config{
		AppName:               "usher-" + o.Name,
		DisableStartupMessage: true,
		ErrorHandler:          ErrorHandler(nil), // the access log tells it
		BodyLimit:             o.BodyLimit,
		ReadBufferSize:        16 << 10, // headers; the default of 4 kB refuses a browser with many cookies
		ReadTimeout:           o.ReadTimeout,
		WriteTimeout:          o.WriteTimeout,
		IdleTimeout:           o.IdleTimeout,
		Concurrency:           o.Concurrency,
		// Forwarded addresses are taken apart by ClientIP, only from trusted
		// peers; Fiber's ProxyHeader believes the whole header of anybody.
		ProxyHeader:       "",
		EnablePrintRoutes: false,
		StreamRequestBody: false,
		// Parts are never taken apart before a handler asks for them.
		DisablePreParseMultipartForm: true,
		UnescapePath:                 false,
		CaseSensitive:                true,
		EnableIPValidation:           false,
	})
	s := &Server{App: app, opts: o, log: log}
	app.Use(s.accessLog)
	s.wrapServer()
	return s
}

// Listen opens the address (":0" works) and returns what it became.
func (s *Server) Listen(ctx context.Context, addr string) (net.Addr, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("%s: %s is taken by another program; set another address with USHER_%s_ADDR: %w",
				s.opts.Name, addr, strings.ToUpper(s.opts.Name), err)
		}
		return nil, fmt.Errorf("%s: listen on %s: %w", s.opts.Name, addr, err)
	}
	s.ln = &patientListener{Listener: ln, log: s.log}
	return ln.Addr(), nil
}

// Serve answers until Shutdown; it returns nil after one.
func (s *Server) Serve() error {
	if err := s.App.Listener(s.ln); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%s: serve: %w", s.opts.Name, err)
	}
	return nil
}

// Drain makes every answer from now on ask its connection to close, so that
// kept-alive connections are gone before Shutdown closes the idle ones: a
// request that crosses that close on the wire would be lost.
func (s *Server) Drain() { s.draining.Store(true) }

// Shutdown stops accepting, lets running requests end, and gives up after ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.ln == nil {
		return nil
	}
	// Closed already, by a drain before or because Serve never ran, is what was wanted.
	if err := s.App.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%s: shutdown: %w", s.opts.Name, err)
	}
	_ = s.ln.Close() // Serve may never have run
	return nil
}

// patientListener keeps accepting when descriptors run out: without it Fiber's
// Listen returns on the first EMFILE and the server is gone.
type patientListener struct {
	net.Listener
	log    *slog.Logger
	closed atomic.Bool
}

func (l *patientListener) Accept() (net.Conn, error) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := l.Listener.Accept()
		if err == nil {
			return conn, nil
		}
		if l.closed.Load() || !(errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)) {
			return nil, err
		}
		l.log.Warn("cannot accept for the moment", "err", err, "retryIn", wait.String())
		time.Sleep(wait)
	}
}

// Close waits for the connections that the kernel has taken in already, and
// then closes: what sits in the queue of a closed socket is reset, with the
// request on it.
func (l *patientListener) Close() error {
	if l.closed.Swap(true) {
		return l.Listener.Close() // again: the error that says so
	}
	if tcp, ok := l.Listener.(*net.TCPListener); ok {
		for deadline := time.Now().Add(250 * time.Millisecond); queued(tcp) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	return l.Listener.Close()
}

// queued tells whether a connection waits to be accepted.
func queued(l *net.TCPListener) (waiting bool) {
	raw, err := l.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		waiting = n > 0 && err == nil
	})
	return waiting
}

// twoLengths finds a chunked request that also claims a Content-Length: fasthttp
// goes by the chunks, a proxy in front may go by the other, and what one takes
// for a body is the next request to the other.
func twoLengths(c *fiber.Ctx) bool { return bothLengths(&c.Request().Header) }

func bothLengths(h *fasthttp.RequestHeader) bool {
	var length, chunks bool
	for line := range bytes.Lines(h.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		switch len(name) { // before the slower comparison: this runs for every request
		case len(fiber.HeaderContentLength):
			length = length || bytes.EqualFold(name, []byte(fiber.HeaderContentLength))
		case len(fiber.HeaderTransferEncoding):
			chunks = chunks || bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding))
		}
	}
	return length && chunks
}

// ClientIP is the peer's address, or, when the peer is a trusted proxy, the
// nearest address in X-Forwarded-For that is not one.
func ClientIP(c *fiber.Ctx, trusted []string) string {
	peer := c.Context().RemoteIP().String()
	if len(trusted) == 0 || !isTrusted(peer, trusted) {
		return peer
	}
	// The header may stand there several times; together they are one list.
	lines := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	hops := strings.Split(string(bytes.Join(lines, []byte(","))), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		addr, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			return peer // a forged header names nobody
		}
		if addr = addr.Unmap(); !isTrusted(addr.String(), trusted) {
			return addr.String()
		}
	}
	return peer
}

func isTrusted(ip string, trusted []string) bool {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	addr = addr.Unmap()
	for _, t := range trusted {
		if p, err := netip.ParsePrefix(t); err == nil && p.Contains(addr) {
			return true
		}
		if a, err := netip.ParseAddr(t); err == nil && a.Unmap() == addr {
			return true
		}
	}
	return false
}
