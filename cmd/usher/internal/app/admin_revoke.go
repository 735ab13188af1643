package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/configs"
	"usher/internal/basehttp"
	"usher/queue"
)

var (
	probRevocation        = basehttp.NewProblem(422, "revocation-invalid", "This revocation cannot be ordered")
	probUnknownRevocation = basehttp.NewProblem(404, "unknown-revocation", "There is no such revocation in force")
)

// adminBody is the largest body an operator may send: ten thousand ids.
const adminBody = 4 << 20

// listedRevocations is how many orders a list tells.
const listedRevocations = 200

// registerRevocations must come before the verbs of a room: their route matches it too.
func (a *App) registerRevocations(r fiber.Router) {
	r.Post("/rooms/:room/revocations", a.allow(configs.RoleOperator), a.adminRevoke)
	r.Get("/rooms/:room/revocations", a.allow(configs.RoleViewer), a.adminRevocations)
	r.Delete("/rooms/:room/revocations/:id", a.allow(configs.RoleOperator), a.adminLift)
}

type revokeBody struct {
	Customers       []string `json:"customers"`
	Places          []string `json:"places"`
	Passes          []string `json:"passes"`
	EverybodyBefore *string  `json:"everybodyBefore"` // RFC 3339, or "now"
	Reason          string   `json:"reason"`
}

// adminRevoke puts an order in force. The rows in Postgres are it; the line is told
// at once, and by the bridge's next turn should that fail.
func (a *App) adminRevoke(c *fiber.Ctx) error {
	var body revokeBody
	if err := basehttp.DecodeJSON(c, &body, false); err != nil {
		return err
	}
	order := booking.Revocation{
		Room: roomOrAll(c), Customers: body.Customers, Places: body.Places, Passes: body.Passes, Reason: body.Reason,
	}
	if at := body.EverybodyBefore; at != nil {
		var before time.Time
		if *at != "now" {
			var err error
			if before, err = time.Parse(time.RFC3339, *at); err != nil || before.IsZero() {
				return probRevocation.Detailf(`everybodyBefore must be an instant like 2026-07-27T19:00:00Z, or "now".`)
			}
		}
		order.EverybodyBefore = &before
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	actor, _ := c.Locals(actorKey).(string)
	id, err := a.office.Revoke(ctx, actor, order)
	if err != nil {
		return revocationProblem(err)
	}
	return c.Status(fiber.StatusCreated).JSON(fiber.Map{
		"revocationId": id, "room": order.Room, "customers": len(body.Customers), "places": len(body.Places), "passes": len(body.Passes),
		"everybody": body.EverybodyBefore != nil, "pushed": a.pushRevoked(order.Room),
	})
}

func (a *App) adminLift(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	actor, _ := c.Locals(actorKey).(string)
	room := roomOrAll(c)
	if err := a.office.Lift(ctx, actor, room, strings.Clone(c.Params("id"))); err != nil {
		return revocationProblem(err)
	}
	a.pushRevoked(room)
	return c.SendStatus(fiber.StatusNoContent)
}

// roomOrAll is the path's room; "" for *, which is every room.
func roomOrAll(c *fiber.Ctx) string {
	if c.Params("room") == "*" || c.Params("room") == "%2A" {
		return ""
	}
	return strings.Clone(c.Params("room"))
}

type revocationDoc struct {
	RevocationID    string   `json:"revocationId"`
	Room            string   `json:"room,omitempty"` // absent: every room
	Actor           string   `json:"actor"`
	Reason          string   `json:"reason"`
	CreatedAt       string   `json:"createdAt"`
	LiftedAt        *string  `json:"liftedAt"` // null while in force
	LiftedBy        string   `json:"liftedBy,omitempty"`
	Customers       int      `json:"customers"`
	Places          int      `json:"places"`
	Passes          int      `json:"passes"`
	EverybodyBefore *string  `json:"everybodyBefore"`
	Subjects        []string `json:"subjects"` // kind:id, the first hundred
}

func (a *App) adminRevocations(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	orders, err := a.office.Revocations(ctx, strings.Clone(c.Params("room")), listedRevocations)
	if err != nil {
		return revocationProblem(err)
	}
	docs := make([]revocationDoc, len(orders))
	for i, o := range orders {
		docs[i] = revocationDoc{
			RevocationID: o.ID, Room: o.Room, Actor: o.Actor, Reason: o.Reason, CreatedAt: stamp(o.CreatedAt), LiftedBy: o.LiftedBy,
			Customers: o.Customers, Places: o.Places, Passes: o.Passes, Subjects: o.Subjects,
			LiftedAt: stampOrNull(o.LiftedAt), EverybodyBefore: stampOrNull(o.EverybodyBefore),
		}
	}
	return c.JSON(fiber.Map{"revocations": docs})
}

func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// pushRevoked tells the line at once; false: it learns by the bridge's next turn.
func (a *App) pushRevoked(room string) bool {
	b := a.bridge.Load()
	if b == nil || room == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.shipRevoked(ctx, room); err != nil {
		a.log.Warn("a revocation is in force; the line learns it by the bridge's next turn", "room", room, "err", err)
		return false
	}
	return true
}

// shipRevoked tells the line who is revoked in a room, as this process knows it.
func (b *bridge) shipRevoked(ctx context.Context, room string) error {
	r := b.office.Revoked(room)
	if r == nil { // nobody could look yet, or the room is new: the next turn has it
		return nil
	}
	return b.line.PutRevoked(ctx, room, queue.Revoked{
		Version: r.Version, Customers: r.Customers, Places: r.Places, Passes: r.Passes, Before: r.Before,
	})
}

func revocationProblem(err error) error {
	var refused *booking.RevocationError
	switch {
	case errors.As(err, &refused):
		return probRevocation.Detailf("Nothing was changed: %s.", refused.Problem)
	case errors.Is(err, booking.ErrUnknownRevocation):
		return probUnknownRevocation.Detailf("The list of the room's revocations has their ids; an order for every room is lifted there.")
	}
	return roomProblem(err)
}
