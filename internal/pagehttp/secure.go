package pagehttp

import (
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// Policy widens the content security policy of one page; the zero value allows
// only what this listener serves itself.
type Policy struct {
	FormTo []string // addresses of other listeners that forms may post to; only their origins count
}

// Secure sets the security headers of an HTML answer.
//
// Referrer-Policy is strict-origin and not stricter: under no-referrer and
// same-origin a browser sends `Origin: null` with a form that goes to the other
// listener, and the check against forged forms there would have nothing to see.
func Secure(c *fiber.Ctx, p Policy) {
	forms := "'self'"
	for _, address := range p.FormTo {
		if o := Origin(address); o != "" {
			forms += " " + o
		}
	}
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; worker-src 'self'; form-action "+forms+"; base-uri 'none'; frame-ancestors 'none'")
	c.Set(fiber.HeaderReferrerPolicy, "strict-origin")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
}

// Origin is the scheme://host[:port] of an http or https address, "" when it
// has none.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// SameOrigin tells whether a form was sent by a page of this listener (or of
// one of the allowed addresses) and not by somebody else's. Browsers say so in
// Sec-Fetch-Site or Origin. A request with neither comes from no current
// browser, and what it could do is bounded by SameSite cookies.
func SameOrigin(c *fiber.Ctx, allowed ...string) bool {
	if origin := c.Get(fiber.HeaderOrigin); origin != "" {
		if origin == "null" {
			return false
		}
		u, err := url.Parse(origin)
		if err == nil && u.Host != "" && strings.EqualFold(u.Host, string(c.Request().Host())) {
			return true
		}
		for _, a := range allowed {
			if o := Origin(a); o != "" && strings.EqualFold(o, origin) {
				return true
			}
		}
		return false
	}
	switch c.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return false
}
