package queuehttp

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/queue/returnto"
)

var errReturn = basehttp.NewProblem(422, "return-not-allowed", "This return address is not on the room's list")

// The address a visit goes back to is kept in a cookie of a day. It needs no signature:
// each use holds it against the list in force.
const (
	returnCookie     = "usher_return_" // + room
	returnCookieLife = 24 * time.Hour
)

func (s *Server) returns(room string) []returnto.Entry {
	if s.opts.Returns == nil {
		return nil
	}
	return s.opts.Returns(room)
}

// back is where an admitted fan goes instead of the box office; the zero value: there.
type back struct {
	address  string
	handover string // returnto.Post or returnto.Cookie
}

func (s *Server) backTo(room, address string) (back, bool) {
	e, ok := returnto.Find(s.returns(room), address)
	if !ok {
		return back{}, false
	}
	b := back{address: address, handover: e.Handover}
	if b.handover == "" {
		b.handover = returnto.Post
	}
	return b, true
}

// whereTo is the address asked for, or else the one this visit was begun with; the
// problem return-not-allowed for one that is asked for and not listed.
func (s *Server) whereTo(c *fiber.Ctx, room, asked string) (back, error) {
	if asked != "" {
		b, ok := s.backTo(room, asked)
		if !ok {
			return back{}, errReturn.Detailf("The operator lists where this room's fans may be sent (edge.returnTo). Nothing was changed.")
		}
		return b, nil
	}
	for _, v := range cookies(c, returnCookie+room) {
		if raw, err := base64.RawURLEncoding.Strict().DecodeString(v); err == nil {
			if b, ok := s.backTo(room, string(raw)); ok {
				return b, nil
			}
		}
	}
	return back{}, nil
}

// begin keeps the return address that the waiting page was called with; an address
// that is not listed takes away what was kept.
func (s *Server) begin(c *fiber.Ctx, room, address string) (b back, ok bool) {
	if b, ok = s.backTo(room, address); ok {
		s.setCookie(c, returnCookie+room, base64.RawURLEncoding.EncodeToString([]byte(address)), returnCookieLife)
	} else if len(cookies(c, returnCookie+room)) > 0 {
		s.setCookie(c, returnCookie+room, "", -time.Hour)
	}
	return b, ok
}

// listed tells that the call comes from a page of an origin on the room's list.
func (s *Server) listed(c *fiber.Ctx) bool {
	origin := c.Get(fiber.HeaderOrigin)
	return origin != "" && slices.Contains(returnto.Origins(s.returns(c.Params("room"))), origin)
}

var headerVary, originValue = []byte(fiber.HeaderVary), []byte(fiber.HeaderOrigin)

// cors lets pages of the room's listed origins call, with the browser's cookies. These
// are SameSite=Lax, so that they come along only from pages of the same site.
func (s *Server) cors(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Response().Header.SetCanonical(headerVary, originValue) // the first to set it
		if s.listed(c) {
			c.Set(fiber.HeaderAccessControlAllowOrigin, strings.Clone(c.Get(fiber.HeaderOrigin)))
			c.Set(fiber.HeaderAccessControlAllowCredentials, "true")
			c.Set(fiber.HeaderAccessControlExposeHeaders, "Retry-After, Location, X-Request-Id")
		}
		return next(c)
	}
}

// preflight answers what a browser asks before a call that no form could make.
func (s *Server) preflight(c *fiber.Ctx) error {
	if !s.listed(c) {
		return errCrossSite.Detailf("Pages of this origin may not call; the room's list of return addresses (edge.returnTo) names those that may.")
	}
	c.Set(fiber.HeaderAccessControlAllowMethods, "GET, POST, DELETE")
	c.Set(fiber.HeaderAccessControlAllowHeaders, "Authorization, Content-Type, Idempotency-Key, "+customerHeader)
	c.Set(fiber.HeaderAccessControlMaxAge, "600")
	return c.SendStatus(fiber.StatusNoContent)
}
