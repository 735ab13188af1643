package basehttp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// wrapServer puts a shell around Fiber's own handlers, for the requests that
// never come to the middleware: they too are answered with a problem document,
// have a line in the log and count in the metrics.
func (s *Server) wrapServer() {
	srv := s.App.Server()
	handle, refuse := srv.Handler, srv.ErrorHandler
	srv.Handler = func(ctx *fasthttp.RequestCtx) {
		if s.expressed(ctx) {
			return
		}
		if slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			handle(ctx)
			return
		}
		s.early(ctx, func(c *fiber.Ctx) {
			c.Set(fiber.HeaderAllow, "GET, HEAD, POST, PATCH, DELETE, OPTIONS")
			_ = s.App.ErrorHandler(c, ErrMethodNotAllowed)
		})
	}
	srv.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		var broken net.Error
		if errors.As(err, &broken) { // cut, or opened ahead by a browser and never used: no request
			refuse(ctx, err)
			return
		}
		s.early(ctx, func(*fiber.Ctx) { refuse(ctx, err) })
	}
}

// early answers a request outside of Fiber's stack and reports it.
func (s *Server) early(ctx *fasthttp.RequestCtx, answer func(c *fiber.Ctx)) {
	start, id := time.Now(), requestID()
	c := s.App.AcquireCtx(ctx)
	defer s.App.ReleaseCtx(c)
	mark(c, id)
	answer(c)
	s.report(c, id, "other", time.Since(start))
}

// requestID is a random UUID (version 4, RFC 9562) as text. It names a line of the log
// and is no secret, so it costs no call of the system's random source.
func requestID() string {
	id := newRequestID()
	return string(id[:])
}

func newRequestID() (text [36]byte) {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	at := 0
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		text[at], text[at+1] = hexDigits[b>>4], hexDigits[b&15]
		at += 2
	}
	return text
}

const hexDigits = "0123456789abcdef"

// Names as the wire has them: writing them as they are costs no look at each letter.
var (
	headerID    = []byte("X-Request-Id")
	headerSniff = []byte("X-Content-Type-Options")
	noSniff     = []byte("nosniff")
)

// mark sets what every answer bears.
func mark(c *fiber.Ctx, id string) { markResponse(&c.Response().Header, []byte(id)) }

func markResponse(h *fasthttp.ResponseHeader, id []byte) {
	h.SetCanonical(headerID, id)
	h.SetCanonical(headerSniff, noSniff)
}

// accessLog is the outermost middleware: it gives every request an id, refuses
// what no handler may see, turns errors and panics into answers, and reports.
func (s *Server) accessLog(c *fiber.Ctx) error {
	start, id := time.Now(), requestID()
	mark(c, id)
	own := c.Route()
	err := s.refused(c)
	if err == nil {
		err = s.next(c, id)
	}
	if err != nil {
		// Answer here, so that the line below tells the status that was sent.
		if err := c.App().ErrorHandler(c, err); err != nil {
			_ = c.SendStatus(fiber.StatusInternalServerError)
		}
	}
	if s.draining.Load() {
		c.Context().SetConnectionClose()
	}
	route := "other"
	status := c.Response().StatusCode()
	if r := c.Route(); r != nil && r != own && status != fiber.StatusNotFound && status != fiber.StatusMethodNotAllowed {
		route = r.Path
	}
	s.report(c, id, route, time.Since(start))
	return nil
}

// refused finds what is wrong with a request whatever its address.
func (s *Server) refused(c *fiber.Ctx) error {
	if twoLengths(c) {
		c.Context().SetConnectionClose()
		return ErrBadRequest.Detailf("Content-Length and Transfer-Encoding exclude each other.")
	}
	if err := plainEncoding(c); err != nil {
		return err
	}
	if ct := c.Request().Header.ContentType(); !s.opts.Multipart && len(ct) >= 10 && strings.EqualFold(string(ct[:10]), "multipart/") {
		return ErrUnsupportedMedia.Detailf("Bodies in parts are not taken here.")
	}
	return nil
}

// next runs the handlers. A panic in one of them is that request's misfortune,
// not the process': without the recover it ends every fan's connection.
func (s *Server) next(c *fiber.Ctx, id string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("a handler panicked", "id", id, "method", c.Method(), "path", clip(c.Path()), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			c.Response().ResetBody()
			err = ErrInternal.Because(fmt.Errorf("panic: %v", v))
		}
	}()
	return c.Next()
}

// report counts a request that was answered and writes its line. Of the answers
// of 500 and above to quiet requests only one a second and route is written: in
// an outage every poll of every fan is one.
func (s *Server) report(c *fiber.Ctx, id, route string, took time.Duration) {
	status := c.Response().StatusCode()
	if s.opts.Observe != nil {
		s.opts.Observe(route, c.Method(), status, took)
	}
	quiet := s.opts.Quiet != nil && s.opts.Quiet(c)
	if quiet && status < 400 {
		return
	}
	level, attrs := slog.LevelInfo, []any{
		"id", id, "method", clip(c.Method()), "path", clip(c.Path()), "route", route, "status", status,
		"ms", float64(took.Microseconds()) / 1000, "ip", ClientIP(c, s.opts.TrustedProxies),
	}
	if slug, ok := c.Locals(problemKey).(string); ok {
		attrs = append(attrs, "problem", slug)
	}
	if status >= 500 {
		may, unlogged := s.failures.may(route, time.Now())
		switch {
		case !may && quiet:
			return
		case status != fiber.StatusServiceUnavailable:
			level = slog.LevelError // a fault of ours: each is worth a look
		case may:
			level = slog.LevelWarn // one a second tells an operator why; the rest are lines like any
		}
		if err, ok := c.Locals(causeKey).(error); ok {
			attrs = append(attrs, "err", fullText(err))
		}
		if unlogged > 0 {
			attrs = append(attrs, "alsoSince", unlogged)
		}
	}
	s.log.Log(context.Background(), level, "request", attrs...)
}

// failures tells whether a route's failed answer is due in the log: one a second.
type failures struct {
	mu     sync.Mutex
	routes map[string]*failing // by matched pattern: a closed set
}

type failing struct {
	due      time.Time
	unlogged int
}

func (f *failures) may(route string, now time.Time) (may bool, unlogged int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.routes[route]
	if r == nil {
		if f.routes == nil {
			f.routes = map[string]*failing{}
		}
		r = &failing{}
		f.routes[strings.Clone(route)] = r
	}
	if now.Before(r.due) {
		r.unlogged++
		return false, 0
	}
	unlogged, r.due, r.unlogged = r.unlogged, now.Add(time.Second), 0
	return true, unlogged
}

// fullText is an error with the causes its problems keep to themselves.
func fullText(err error) string {
	text := err.Error()
	for p := (*Problem)(nil); errors.As(err, &p) && p.cause != nil; err = p.cause {
		text += ": " + p.cause.Error()
	}
	return text
}
