package queuehttp

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/queue"
)

const (
	fanCookie      = "usher_fan"
	placeCookie    = "usher_place_" // + room
	fanBytes       = 16
	fanCookieLife  = 180 * 24 * time.Hour
	placeCookieTTL = 7 * 24 * time.Hour
)

// fan is the id in the fan's cookie, "" when there is none that we could have
// set: a broken or foreign cookie is no reason to turn a browser away.
func (s *Server) fan(c *fiber.Ctx) string {
	v := c.Cookies(fanCookie)
	if len(v) != base64.RawURLEncoding.EncodedLen(fanBytes) {
		return ""
	}
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(v); err != nil || len(raw) != fanBytes {
		return ""
	}
	return strings.Clone(v)
}

// ensureFan gives the browser a fan id when it has none. The page calls it, so
// that the join that follows presents the cookie and is bound to this browser.
func (s *Server) ensureFan(c *fiber.Ctx) {
	if s.fan(c) == "" {
		s.setCookie(c, fanCookie, newFan(), fanCookieLife)
	}
}

func newFan() string {
	var b [fanBytes]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// cookieToken is the place token in the room's cookie, unchecked; "" for none.
func (s *Server) cookieToken(c *fiber.Ctx, room string) queue.Token {
	return queue.Token(strings.Clone(c.Cookies(placeCookie + room)))
}

func (s *Server) setPlace(c *fiber.Ctx, room string, t queue.Token) {
	s.setCookie(c, placeCookie+room, string(t), placeCookieTTL)
}

func (s *Server) clearPlace(c *fiber.Ctx, room string) {
	s.setCookie(c, placeCookie+room, "", -time.Hour)
}

func (s *Server) setCookie(c *fiber.Ctx, name, value string, life time.Duration) {
	c.Cookie(&fiber.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(life.Seconds()), Expires: time.Now().Add(life),
		HTTPOnly: true, Secure: s.opts.SecureCookies, SameSite: fiber.CookieSameSiteLaxMode,
	})
}

// placeToken is the token the caller presents: Bearer, else cookie. bearer tells
// which, because a broken Bearer is refused and a broken cookie is not there.
func (s *Server) placeToken(c *fiber.Ctx, room string) (t queue.Token, bearer bool) {
	if b := basehttp.BearerToken(c); b != "" {
		return queue.Token(b), true
	}
	return s.cookieToken(c, room), false
}
