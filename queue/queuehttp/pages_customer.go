package queuehttp

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/internal/pagehttp"
)

// takeJoin joins by our own page's form. One of another site is let through when it
// brings a good customer token, which only the room's integrator can have made: it
// hands its customer over.
func (p *pages) takeJoin(c *fiber.Ctx) error {
	room := strings.Clone(c.Params("room"))
	if p.s.ours(c) {
		return p.join(c, room)
	}
	field, err := basehttp.Form(c)
	if err != nil || field("customerToken") == "" {
		return p.foreign(c, room)
	}
	token := strings.TrimSpace(field("customerToken"))
	if _, err := p.s.verifyCustomer(c, room, token); err != nil {
		if slugOf(err) == "unknown-room" {
			return p.kit.Render(c, pagehttp.View{Status: fiber.StatusNotFound, Page: "unknown", Data: room})
		}
		err := p.kit.Render(c, pagehttp.View{Status: slugStatus(err), Page: "customer", Data: roomPath(room), Path: roomPath(room)})
		c.Response().Header.DelAllCookies() // nothing was changed, the language neither
		return err
	}
	// Our cookies did not come with this form. With the page that follows they do.
	p.s.setCookie(c, customerCookie+room, token, customerCookieLife)
	return c.Redirect(roomPath(room), fiber.StatusSeeOther)
}

// handedOver joins for a customer whose token is kept, if this browser has no place
// in the room: one that it has is shown, and never exchanged for what a form brought.
// A refusal is the page's to show; what it needs (a proof, a wait) its own join brings.
func (p *pages) handedOver(c *fiber.Ctx, room string) *placeDoc {
	if len(cookies(c, customerCookie+room)) == 0 || p.s.cookieToken(c, room) != "" {
		return nil
	}
	n, err := p.s.whoSays(c, room, "")
	if err != nil || !n.kept {
		return nil
	}
	doc, _, err := p.s.join(c, room, joinBody{WaitTicket: keptTicket(c, room)})
	if err != nil {
		return nil
	}
	return &doc
}

// unnamed tells that this browser could take no place now: the room is for known
// customers alone.
func (p *pages) unnamed(c *fiber.Ctx, room string) bool {
	return p.s.customers(room).Required && len(cookies(c, customerCookie+room)) == 0 &&
		!p.s.line.IsKnown(room, p.s.cookieToken(c, room))
}
