package basehttp

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Express has a handler answer before Fiber's stack, for the one kind of request that is
// nearly all of a listener's work. Set it before Serve.
//
// answer writes a complete answer of status 200 and returns the matched route's pattern,
// or touches nothing and returns "": then Fiber's handlers answer. It sees only GETs
// without a body, as far as their headers say. Such an answer bears what every answer
// bears and is observed; it has no line in the log, as quiet requests have none.
func (s *Server) Express(answer func(ctx *fasthttp.RequestCtx) (route string)) { s.express = answer }

// expressed reports whether the express handler answered.
func (s *Server) expressed(ctx *fasthttp.RequestCtx) (answered bool) {
	h := &ctx.Request.Header
	if s.express == nil || !h.IsGet() || hasBody(h) || bothLengths(h) {
		return false
	}
	start := time.Now()
	defer func() {
		if v := recover(); v != nil { // as in next: else it ends every fan's connection
			s.log.Error("a handler panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			ctx.Response.Reset()
			s.early(ctx, func(c *fiber.Ctx) { _ = s.App.ErrorHandler(c, ErrInternal) })
			answered = true
		}
	}()
	route := s.express(ctx)
	if route == "" {
		return false
	}
	id := newRequestID()
	markResponse(&ctx.Response.Header, id[:])
	if s.draining.Load() {
		ctx.SetConnectionClose()
	}
	if s.opts.Observe != nil {
		s.opts.Observe(route, fiber.MethodGet, fiber.StatusOK, time.Since(start))
	}
	return true
}
