package ssehub

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openWithin bounds how long a stream may be taken and not begun.
const openWithin = 10 * time.Second

var heartbeat = []byte(":\n\n")

// Stream is one client's. It is safe for concurrent use.
type Stream struct {
	hub  *Hub
	mu   sync.Mutex
	fd   int    // −1 once closed
	rest []byte // of the event that was not taken whole
	at   int64  // ms: of the last event or heartbeat; before Begin, of Take
	open bool
}

// Take reserves a stream on the connection, which its server still owns and will
// close: the hub duplicates the descriptor. ErrFull when none is free, of ours or of
// the process' descriptors; ErrClosed; any other error for a connection that is no socket.
func (h *Hub) Take(conn net.Conn) (*Stream, error) {
	sock, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("ssehub: a %T is no socket", conn)
	}
	s := &Stream{hub: h, fd: -1, at: time.Now().UnixMilli()}
	h.mu.Lock()
	switch {
	case !h.running:
		h.mu.Unlock()
		return nil, ErrClosed
	case len(h.streams) >= h.opts.Max:
		h.mu.Unlock()
		return nil, ErrFull
	}
	h.streams[s] = struct{}{}
	h.counted()
	s.mu.Lock() // nobody may close it before it has its descriptor
	h.mu.Unlock()
	defer s.mu.Unlock()
	fd, err := duplicate(sock)
	if err != nil {
		h.forget(s)
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			return nil, ErrFull
		}
		return nil, fmt.Errorf("ssehub: %w", err)
	}
	s.fd = fd
	return s, nil
}

func duplicate(sock syscall.Conn) (fd int, err error) {
	raw, err := sock.SyscallConn()
	if err != nil {
		return -1, err
	}
	// The copy is non-blocking as the original is: that is a property of what both name.
	if cerr := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil {
		return -1, cerr
	}
	return fd, err
}

func (h *Hub) forget(s *Stream) {
	h.mu.Lock()
	delete(h.streams, s)
	h.counted()
	h.mu.Unlock()
}

// Begin writes the first bytes: the response's header and what follows it. The
// server must write nothing to the connection from here on.
func (s *Stream) Begin(head []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return
	}
	s.open = true
	s.write(head)
}

// Send gives the client an event. It never waits: false when the client has not taken
// the event before it yet, or the stream has ended; nothing was sent then.
func (s *Stream) Send(event []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.flush() || s.fd < 0 || !s.open {
		return false
	}
	s.write(event)
	s.hub.sent.Inc()
	return true
}

// Over tells whether the stream has ended.
func (s *Stream) Over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fd < 0
}

// Close ends the stream; the last bytes are sent as far as the client takes them now.
func (s *Stream) Close(last []byte, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open && s.flush() && s.fd >= 0 && len(last) > 0 {
		s.write(last)
	}
	s.end(reason)
}

// end gives the descriptor back; under mu.
func (s *Stream) end(reason string) {
	if s.fd < 0 {
		return
	}
	_ = unix.Shutdown(s.fd, unix.SHUT_WR) // the end follows the last bytes, whatever the client still sends
	_ = unix.Close(s.fd)
	s.fd, s.rest = -1, nil
	s.hub.forget(s)
	s.hub.closed.WithLabelValues(reason).Inc()
}

// write sends what the socket takes and keeps the rest; under mu, with no rest.
func (s *Stream) write(b []byte) {
	n, err := write(s.fd, b)
	switch {
	case err != nil:
		s.end(Gone)
	case n < len(b):
		s.rest = append([]byte(nil), b[n:]...)
		fallthrough
	default:
		s.at = time.Now().UnixMilli()
	}
}

// flush sends the rest; true when there is none any more. Under mu.
func (s *Stream) flush() bool {
	if len(s.rest) == 0 || s.fd < 0 {
		return true
	}
	n, err := write(s.fd, s.rest)
	if err != nil {
		s.end(Gone)
		return true
	}
	if n > 0 {
		s.at = time.Now().UnixMilli() // slow, but taking
	}
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.rest = nil
		return true
	}
	return false
}

// sweep is what the hub does for a stream each second.
func (s *Stream) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := time.Duration(now.UnixMilli()-s.at) * time.Millisecond
	switch {
	case s.fd < 0:
	case !s.open:
		if idle > openWithin {
			s.end(Unopened)
		}
	case left(s.fd):
		s.end(Gone)
	case !s.flush():
		if idle > s.hub.opts.Stall {
			s.end(Slow)
		}
	case s.fd >= 0 && idle >= s.hub.opts.Heartbeat:
		s.write(heartbeat)
	}
}

// write is 0 when the socket is full; its descriptor does not block.
func write(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Write(fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return 0, nil
		default:
			return max(n, 0), err
		}
	}
}

// left tells whether the client has closed its side, without reading anything: only
// a write would tell otherwise, and only the second one after the client left.
func left(fd int) bool {
	var b [1]byte
	n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return false
	case err != nil:
		return true
	}
	return n == 0
}
