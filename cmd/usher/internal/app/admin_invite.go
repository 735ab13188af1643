package app

import (
	"context"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/configs"
	"usher/internal/basehttp"
	"usher/queue"
)

var (
	probInvite   = basehttp.NewProblem(422, "invite-out-of-range", "An invite cannot be made like this")
	probNoInvite = basehttp.NewProblem(409, "invites-not-configured", "This process cannot sign invites")
)

// registerInvites must come before the verbs of a room: their route matches it too.
func (a *App) registerInvites(r fiber.Router) {
	r.Post("/rooms/:room/invites", a.allow(configs.RoleOperator), a.adminInvite)
	r.Get("/rooms/:room/invites", a.allow(configs.RoleViewer), a.adminInvites)
}

type inviteDoc struct {
	InviteID  string `json:"inviteId"`
	Room      string `json:"room"`
	Kind      string `json:"kind"`
	Quota     int    `json:"quota"`
	ExpiresAt string `json:"expiresAt"`
	CreatedAt string `json:"createdAt,omitempty"`
	Actor     string `json:"actor,omitempty"`
	Invite    string `json:"invite,omitempty"` // the token; told once, to whoever made it
	URL       string `json:"url,omitempty"`    // behind its # stands the token: browsers send that nowhere
}

// adminInvite makes a signed invite. It is written down before it is told: no link
// goes about of which the audit log does not know.
func (a *App) adminInvite(c *fiber.Ctx) error {
	var body struct {
		Kind             queue.InviteKind `json:"kind"` // "bypass", and so is none; "priority"
		Quota            int              `json:"quota"`
		ExpiresInSeconds int64            `json:"expiresInSeconds"`
	}
	if err := basehttp.DecodeJSON(c, &body, false); err != nil {
		return err
	}
	most := int64(queue.MaxInviteLife / time.Second)
	secrets := a.config().Edge.PlaceSecrets
	if body.Kind == "" {
		body.Kind = queue.Bypass
	}
	switch {
	case body.Kind != queue.Bypass && body.Kind != queue.Priority:
		return probInvite.Detailf("The kind of an invite is bypass or priority.").With("field", "kind")
	case body.Quota < 1 || body.Quota > queue.MaxInviteQuota:
		return probInvite.Detailf("quota must be between 1 and %d, not %d.", queue.MaxInviteQuota, body.Quota).With("field", "quota")
	case body.ExpiresInSeconds < 1 || body.ExpiresInSeconds > most:
		return probInvite.Detailf("expiresInSeconds must be between 1 and %d, not %d.", most, body.ExpiresInSeconds).With("field", "expiresInSeconds")
	case len(secrets) == 0:
		return probNoInvite.Detailf("Give this process the edge's edge.placeSecrets as well; invites are signed with the first.")
	}
	room := strings.Clone(c.Params("room"))
	expires := time.Now().Add(time.Duration(body.ExpiresInSeconds) * time.Second)
	invite, token := queue.NewInvite([]byte(secrets[0].Reveal()), room, body.Kind, body.Quota, expires)
	actor, _ := c.Locals(actorKey).(string)
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	if err := a.rooms.NoteInvite(ctx, room, booking.InviteNote{
		ID: invite.ID, Kind: string(invite.Kind), Actor: actor, Quota: invite.Quota, ExpiresAt: invite.Expires,
	}); err != nil {
		return roomProblem(err)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(fiber.StatusCreated).JSON(inviteDoc{
		InviteID: invite.ID, Room: room, Kind: string(invite.Kind), Quota: invite.Quota, ExpiresAt: stamp(invite.Expires),
		Invite: token, URL: strings.TrimRight(a.urlOf("edge", a.config().Edge.PublicURL), "/") + "/rooms/" + room + "/invite#invite=" + token,
	})
}

func (a *App) adminInvites(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	room := strings.Clone(c.Params("room"))
	notes, err := a.rooms.Invites(ctx, room, listedRevocations)
	if err != nil {
		return roomProblem(err)
	}
	docs := make([]inviteDoc, len(notes))
	for i, n := range notes {
		docs[i] = inviteDoc{
			InviteID: n.ID, Room: room, Kind: n.Kind, Quota: n.Quota, ExpiresAt: stamp(n.ExpiresAt), CreatedAt: stamp(n.CreatedAt), Actor: n.Actor,
		}
	}
	return c.JSON(fiber.Map{"invites": docs})
}
