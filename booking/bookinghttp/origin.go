package bookinghttp

import (
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
)

// cors lets the pages of a room's allowed origins call the API. They call with a
// Bearer token: Access-Control-Allow-Credentials is never sent, so no other
// origin's page can use the session cookie of a fan, whoever is on the list.
//
// A preflight tells no session, so where the path names no room the question is
// put for room "" ("any room's"); the call itself is checked again against its
// session's room.
func (s *Server) cors(c *fiber.Ctx) error {
	c.Vary(fiber.HeaderOrigin)
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" || s.isOwn(c, origin) {
		return c.Next()
	}
	allowed := s.allows("", origin)
	if allowed {
		c.Set(fiber.HeaderAccessControlAllowOrigin, strings.Clone(origin))
		c.Set(fiber.HeaderAccessControlExposeHeaders, "ETag, Retry-After, Location, X-Request-Id")
	}
	if c.Method() != fiber.MethodOptions || c.Get(fiber.HeaderAccessControlRequestMethod) == "" {
		return c.Next()
	}
	if !allowed {
		return errOrigin
	}
	c.Set(fiber.HeaderAccessControlAllowMethods, "GET, POST, DELETE")
	c.Set(fiber.HeaderAccessControlAllowHeaders, "Authorization, Content-Type, Idempotency-Key, If-None-Match")
	c.Set(fiber.HeaderAccessControlMaxAge, "600")
	return c.SendStatus(fiber.StatusNoContent)
}

func (s *Server) allows(room, origin string) bool {
	return s.opts.AllowedOrigins != nil && slices.Contains(s.opts.AllowedOrigins(room), origin)
}

// originFits refuses a call from another origin's page that the session's room
// does not allow.
func (s *Server) originFits(c *fiber.Ctx, room string) error {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" || s.isOwn(c, origin) || s.allows(room, origin) {
		return nil
	}
	return errOrigin
}

// isOwn: origin is this listener's, as the browser reached it.
func (s *Server) isOwn(c *fiber.Ctx, origin string) bool {
	if origin == s.origin && origin != "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == string(c.Context().Host())
}

// ownPage refuses an unsafe call that is proven by a cookie alone and does not
// say that our own page made it: the browser adds the cookie to anybody's form.
// A Bearer token is never added by itself, so its caller needs no such proof.
func (s *Server) ownPage(c *fiber.Ctx) error {
	if basehttp.BearerToken(c) != "" {
		return nil
	}
	switch c.Method() {
	case fiber.MethodGet, fiber.MethodHead, fiber.MethodOptions:
		return nil
	}
	switch c.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return nil
	case "":
		if origin := c.Get(fiber.HeaderOrigin); origin != "" && s.isOwn(c, origin) {
			return nil
		}
	}
	return errCrossSite
}

// fromWaitingPage refuses a form that another site's page sent to /enter: it
// would seat this browser in a stranger's session. The waiting page may be on
// another origin, and a strict referrer policy makes its Origin "null"; then
// Sec-Fetch-Site tells.
func (s *Server) fromWaitingPage(c *fiber.Ctx) error {
	origin := c.Get(fiber.HeaderOrigin)
	if origin != "" && origin != "null" {
		if s.isOwn(c, origin) || sameOrigin(origin, s.opts.EdgeURL) {
			return nil
		}
		return errCrossSite
	}
	if c.Get("Sec-Fetch-Site") == "cross-site" {
		return errCrossSite
	}
	return nil
}

func sameOrigin(origin, address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && origin == u.Scheme+"://"+u.Host
}
