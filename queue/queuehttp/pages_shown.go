package queuehttp

import (
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
)

// shownPlace is what this browser was last told: the position when it joined
// and the last one. It lives in a cookie that room.js writes too, so that the
// first paint after a reload shows no larger number than the fan has seen. It is
// only a memory of the screen: whatever a fan writes into it, the line's order
// stays what it is.
type shownPlace struct {
	First, Last int
	Told        string // what the edge wants to hear again (placeDoc.Shown)
}

// maxShown refuses a nonsense cookie; no line is longer.
const maxShown = 1 << 31

func shownCookie(room string) string { return "usher_shown_" + room }

// apply gives the position to show and the one at joining.
func (s shownPlace) apply(position int) (now, first int) {
	if s.Last > 0 {
		position = min(position, s.Last)
	}
	return position, max(position, s.First)
}

// shownKey ties the memory to one place: the end of its token, which is another
// one as soon as the fan stands anywhere else in the line.
func shownKey(token string) string { return token[max(0, len(token)-8):] }

// recallShown is zero without a good cookie of this very place.
func (p *pages) recallShown(c *fiber.Ctx, room, token string) shownPlace {
	key, rest, ok := strings.Cut(c.Cookies(shownCookie(room)), ".")
	var s shownPlace
	if !ok || key != shownKey(token) {
		return s
	}
	parts := strings.SplitN(rest, ".", 3)
	if len(parts) == 3 {
		s.Told = parts[2]
	}
	if n, err := fmt.Sscanf(rest, "%d.%d", &s.First, &s.Last); n != 2 || err != nil ||
		s.Last < 1 || s.First < s.Last || s.First > maxShown {
		return shownPlace{}
	}
	return s
}

func (p *pages) rememberShown(c *fiber.Ctx, room, token string, s shownPlace) {
	value := fmt.Sprintf("%s.%d.%d", shownKey(token), s.First, s.Last)
	if s.Told != "" {
		value += "." + s.Told
	}
	p.setShown(c, room, value, time.Now().Add(24*time.Hour))
}

func (p *pages) forgetShown(c *fiber.Ctx, room string) {
	if c.Cookies(shownCookie(room)) != "" {
		p.setShown(c, room, "", time.Unix(1, 0))
	}
}

func (p *pages) setShown(c *fiber.Ctx, room, value string, until time.Time) {
	c.Cookie(&fiber.Cookie{
		Name: shownCookie(room), Value: value, Path: "/rooms", Expires: until,
		Secure: p.s.opts.SecureCookies, SameSite: fiber.CookieSameSiteLaxMode,
		// not HTTPOnly: the page's script keeps it up to date
	})
}
