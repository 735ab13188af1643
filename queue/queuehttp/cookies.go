package queuehttp

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
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

// maxTwins bounds how many cookies of one name are looked at.
const maxTwins = 16

// cookies are the values of all cookies of a name. Set under different paths, or by
// a neighbour under the parent domain, a browser sends several, in an order that
// says nothing about which of them is ours.
func cookies(c *fiber.Ctx, name string) []string {
	var values []string
	for k, v := range c.Request().Header.Cookies() {
		if string(k) == name && len(v) > 0 && len(values) < maxTwins {
			values = append(values, string(v))
		}
	}
	return values
}

// fans are the ids in the fan's cookies that we could have set: a broken or foreign
// cookie is no reason to turn a browser away.
func (s *Server) fans(c *fiber.Ctx) []string {
	return slices.DeleteFunc(cookies(c, fanCookie), func(v string) bool {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(v)
		return err != nil || len(raw) != fanBytes
	})
}

// ensureFan gives the browser a fan id when it has none. The page calls it, so
// that the join that follows presents the cookie and is bound to this browser.
func (s *Server) ensureFan(c *fiber.Ctx) {
	if len(s.fans(c)) == 0 {
		s.setCookie(c, fanCookie, newFan(), fanCookieLife)
	}
}

func newFan() string {
	var b [fanBytes]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// cookieToken is the first good place token in the room's cookies; "" for none.
func (s *Server) cookieToken(c *fiber.Ctx, room string) queue.Token {
	for _, v := range cookies(c, placeCookie+room) {
		if t := queue.Token(v); s.line.Holds(room, t) {
			return t
		}
	}
	return ""
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

// firstToken is the token a poll most likely means, unchecked and not copied: it must
// not outlive the request.
func (s *Server) firstToken(c *fiber.Ctx, room string) queue.Token {
	if scheme, token, ok := strings.Cut(c.Get(fiber.HeaderAuthorization), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return queue.Token(token)
	}
	return queue.Token(c.Cookies(placeCookie + room))
}
