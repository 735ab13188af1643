package queuehttp

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/internal/pagehttp"
)

// inviteView is what templates/invite.html shows.
type inviteView struct {
	Room, Title string
	Why         string // the refusal's slug; "" before the first try
}

// inviteReasons are the refusals the page has words for.
var inviteReasons = map[string]bool{
	"invite-invalid": true, "invite-expired": true, "invite-used-up": true, "room-closed": true, "room-not-open-yet": true, "revoked": true,
}

// invite is where an invite's link leads. The token stands behind the address' #,
// which browsers send nowhere: the page's script posts it, and without one the fan
// pastes the link into the form.
func (p *pages) invite(c *fiber.Ctx) error {
	p.s.ensureFan(c)
	return p.showInvite(c, strings.Clone(c.Params("room")), fiber.StatusOK, "")
}

func (p *pages) showInvite(c *fiber.Ctx, room string, status int, why string) error {
	info, err := p.s.roomView(room)
	if slugOf(err) == "unknown-room" {
		return p.kit.Render(c, pagehttp.View{Status: fiber.StatusNotFound, Page: "unknown", Data: room})
	}
	v := inviteView{Room: room, Title: info.Title, Why: why}
	if err != nil || v.Title == "" {
		v.Title = room
	}
	return p.kit.Render(c, pagehttp.View{Status: status, Page: "invite", Data: v, Path: roomPath(room) + "/invite"})
}

// takeInvite joins by the form's invite, or says why not on the same page.
func (p *pages) takeInvite(c *fiber.Ctx, room string) error {
	field, err := basehttp.Form(c)
	if err != nil {
		return p.showInvite(c, room, fiber.StatusUnprocessableEntity, "invite-invalid")
	}
	token := strings.TrimSpace(field("invite"))
	if _, after, whole := strings.Cut(token, "#invite="); whole { // the whole link was pasted
		token = after
	}
	if token == "" { // an empty one would be an ordinary join
		return p.showInvite(c, room, fiber.StatusUnprocessableEntity, "invite-invalid")
	}
	_, _, err = p.s.join(c, room, joinBody{Invite: token})
	if slug := slugOf(err); inviteReasons[slug] {
		return p.showInvite(c, room, slugStatus(err), slug)
	}
	if err == nil {
		p.forgetShown(c, room) // the number of a place that moved
	}
	return p.after(c, room, err)
}
