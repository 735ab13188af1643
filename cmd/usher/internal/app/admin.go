package app

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"usher/booking"
	"usher/configs"
	"usher/internal/basehttp"
)

var (
	probNotReady    = basehttp.NewProblem(503, "not-ready", "This process is starting or stopping")
	probUnknownRoom = basehttp.NewProblem(404, "unknown-room", "There is no such room")
	probTransition  = basehttp.NewProblem(409, "room-transition", "The room cannot go from its state to that one")
	probBounds      = basehttp.NewProblem(422, "out-of-range", "A number is outside what a room may have")
	probNoRooms     = basehttp.NewProblem(404, "no-rooms-here", "This process keeps no rooms; ask a booking process")
	probNoChange    = basehttp.NewProblem(400, "nothing-to-change", "The body names nothing to change")
)

// buildAdmin registers health, metrics and the operators' calls.
func (a *App) buildAdmin() {
	r := a.servers["admin"].App
	r.Get("/healthz", func(c *fiber.Ctx) error { return c.SendString("ok\n") })
	r.Get("/readyz", func(c *fiber.Ctx) error {
		if !a.ready.Load() {
			return probNotReady
		}
		if p := a.passes.Load().fault(); p != nil {
			return p
		}
		return c.SendString("ready\n")
	})
	r.Get("/metrics", adaptor.HTTPHandler(promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{Registry: a.registry})))

	v1 := r.Group("/v1/admin")
	v1.Get("/rooms", a.allow(configs.RoleViewer), a.adminRooms)
	v1.Get("/rooms/:room", a.allow(configs.RoleViewer), a.adminRoom)
	v1.Patch("/rooms/:room", a.allow(configs.RoleOperator), a.adminTune)
	a.registerRevocations(v1)
	a.registerInvites(v1)
	v1.Post("/rooms/:room/:verb", a.allow(configs.RoleOperator), a.adminVerb)
}

// operator tells who bears the token, and whether they have the role. Every
// operator may look. All hashes are compared, so that the time taken does not
// tell which of them was near.
func (a *App) operator(token, role string) (actor string, ok bool) {
	actor, ok, _ = a.identify(token, role)
	return actor, ok
}

func (a *App) identify(token, role string) (actor string, allowed, known bool) {
	sum := sha256.Sum256([]byte(token))
	given := []byte(hex.EncodeToString(sum[:]))
	for _, o := range a.config().Operators {
		want := []byte(strings.ToLower(strings.TrimPrefix(o.TokenHash, "sha256:")))
		if token == "" || subtle.ConstantTimeCompare(given, want) != 1 {
			continue
		}
		known = true
		if o.Role == role || role == configs.RoleViewer {
			actor, allowed = o.Name, true
		}
	}
	return actor, allowed, known
}

func (a *App) allow(role string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		actor, allowed, known := a.identify(basehttp.BearerToken(c), role)
		switch {
		case !known:
			c.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="usher"`)
			return basehttp.ErrUnauthorized.Detailf("Send an operator token as Bearer.")
		case !allowed:
			return basehttp.ErrForbidden.Detailf("The role %s is needed.", role)
		case a.rooms == nil:
			return probNoRooms
		}
		c.Locals(actorKey, actor)
		return c.Next()
	}
}

const actorKey = "usher.actor"

// adminTimeout bounds one operator's call on the database.
const adminTimeout = 5 * time.Second

type adminRoomDoc struct {
	Room          string   `json:"room"`
	Title         string   `json:"title"`
	Mode          string   `json:"mode"`
	State         string   `json:"state"`
	Valve         valveDoc `json:"valve"`
	Line          *lineDoc `json:"line,omitempty"` // absent when Redis does not answer, and in lists
	RatePerMinute int      `json:"ratePerMinute"`
	Cap           int      `json:"cap"`
	PriorityShare int      `json:"priorityShare"` // percent of the calls for the priority line while both lines wait
	OpensAt       *string  `json:"opensAt"`
	Run           int      `json:"run"`
	Version       int64    `json:"version"`
	UpdatedAt     string   `json:"updatedAt"`
	scheduleDoc
}

func adminDoc(r booking.Room) adminRoomDoc {
	return adminRoomDoc{
		Room: r.ID, Title: r.Title, Mode: r.Mode, State: r.State, Valve: valveDoc{Mode: r.Valve}, RatePerMinute: r.RatePerMinute,
		Cap: r.Cap, PriorityShare: r.PriorityShare, Run: r.Run, Version: r.Version, UpdatedAt: stamp(r.UpdatedAt),
		OpensAt: stampOrNull(r.OpensAt), scheduleDoc: describeSchedule(r),
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func (a *App) adminRooms(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	rooms, err := a.rooms.List(ctx)
	if err != nil {
		return roomProblem(err)
	}
	docs := make([]adminRoomDoc, len(rooms))
	for i, r := range rooms {
		docs[i] = adminDoc(r)
	}
	return c.JSON(fiber.Map{"rooms": docs})
}

func (a *App) adminRoom(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	r, err := a.rooms.Get(ctx, strings.Clone(c.Params("room")))
	if err != nil {
		return roomProblem(err)
	}
	d := adminDoc(r)
	if b := a.bridge.Load(); b != nil {
		b.watch(context.Background(), &d, r)
	}
	return c.JSON(d)
}

func (a *App) adminVerb(c *fiber.Ctx) error {
	change, ok := booking.RoomVerb(strings.Clone(c.Params("verb")))
	if !ok {
		return basehttp.ErrNotFound.Detailf("A room can be told gather, draw, open, pause, resume or close.")
	}
	return a.adminChange(c, change)
}

// adminChange writes the change to Postgres, where it counts, and pushes it to
// Redis at once, so that a stop does not wait for the bridge's next turn.
func (a *App) adminChange(c *fiber.Ctx, change booking.RoomChange) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	actor, _ := c.Locals(actorKey).(string)
	r, err := a.rooms.Change(ctx, actor, strings.Clone(c.Params("room")), change)
	if err != nil {
		return roomProblem(err)
	}
	// A deadline of its own: a slow commit must not leave the push without time.
	pushed := false
	if b := a.bridge.Load(); b != nil {
		if err := b.push(context.Background(), r); err != nil {
			a.log.Warn("an operator's change waits for the bridge", "room", r.ID, "err", err)
		} else {
			pushed = true
		}
	}
	return c.JSON(struct {
		adminRoomDoc
		Pushed bool `json:"pushed"` // false: the edges learn it by the bridge's next turn that works
	}{adminDoc(r), pushed})
}

func roomProblem(err error) error {
	var transition *booking.RoomTransitionError
	var bounds *booking.RoomBoundsError
	switch {
	case errors.Is(err, booking.ErrUnknownRoom):
		return probUnknownRoom
	case errors.Is(err, booking.ErrUnknownValve):
		return probValve.With("field", "valve")
	case errors.As(err, &transition):
		return probTransition.Detailf("%s", strings.TrimSpace(fmt.Sprintf("It is %s and cannot become %s. %s", transition.From, transition.To, transition.Why))).
			With("from", transition.From).With("to", transition.To)
	case errors.As(err, &bounds):
		return probBounds.Detailf("%s must be between %d and %d, not %d.", bounds.Field, bounds.Min, bounds.Max, bounds.Got).
			With("field", bounds.Field)
	case scheduleProblem(err) != nil:
		return scheduleProblem(err)
	case booking.Unreachable(err):
		return basehttp.ErrUnavailable.Detailf("The database does not answer; nothing is known to have changed.").
			After(2 * time.Second).Because(err)
	}
	return err
}
