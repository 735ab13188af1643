package queuehttp

import (
	"embed"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/internal/pagehttp"
	"usher/queue/returnto"
)

//go:embed templates static messages.*.yaml
var pageFiles embed.FS

// pages are the HTML side of the edge: the waiting page, its forms and the list
// of rooms. They work on the same verbs as the JSON API, so a fan who reads the
// page without script stands in the same line as one who polls.
type pages struct {
	s       *Server
	kit     *pagehttp.Kit
	scripts map[string]json.RawMessage // room.js's messages, by language
	checks  map[string]string          // draw.js's, as JSON
}

func newPages(s *Server) (*pages, error) {
	kit, err := pagehttp.New(pagehttp.Options{Files: pageFiles, SecureCookies: s.opts.SecureCookies, Funcs: pageFuncs})
	if err != nil {
		return nil, err
	}
	p := &pages{s: s, kit: kit, scripts: map[string]json.RawMessage{}, checks: map[string]string{}}
	for _, l := range pagehttp.Langs {
		if p.scripts[l.Code], err = json.Marshal(kit.Catalog.Text(l).ForScript("w.")); err != nil {
			return nil, err
		}
		check, err := json.Marshal(kit.Catalog.Text(l).ForScript("v."))
		if err != nil {
			return nil, err
		}
		p.checks[l.Code] = string(check)
	}
	return p, nil
}

func (s *Server) registerPages(r fiber.Router) {
	p, err := newPages(s)
	if err != nil {
		panic(err) // the embedded files are wrong: a programmer's mistake
	}
	p.kit.Register(r)
	r.Get("/", p.index)
	r.Get("/rooms/:room", p.room)
	r.Get("/rooms/:room/draw", p.draw)
	r.Get("/rooms/:room/invite", p.invite)
	r.Post("/rooms/:room/invite", p.own(p.takeInvite))
	r.Get("/rooms/:room/move", p.showMove)
	r.Post("/rooms/:room/move", p.own(p.takeMove))
	r.Post("/rooms/:room/device", p.own(p.device))
	r.Post("/rooms/:room/join", p.takeJoin)
	r.Post("/rooms/:room/enter", p.own(p.enter))
	r.Post("/rooms/:room/leave", p.own(p.leave))
	// A reload after a form, or the language switch on its answer, comes here.
	for _, verb := range []string{"join", "enter", "leave", "device"} {
		r.Get("/rooms/:room/"+verb, func(c *fiber.Ctx) error { return c.Redirect(roomPath(c.Params("room")), fiber.StatusSeeOther) })
	}
}

func roomPath(room string) string { return "/rooms/" + url.PathEscape(room) }

// own lets a form through only when this edge's own page sent it: a foreign
// page must not make a visitor's browser join, claim or give up a place.
func (p *pages) own(next func(c *fiber.Ctx, room string) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		room := strings.Clone(c.Params("room"))
		if !p.s.ours(c) {
			return p.foreign(c, room)
		}
		return next(c, room)
	}
}

// foreign answers a form of another site's page: a page of its own, which joins
// nobody and sets no cookie.
func (p *pages) foreign(c *fiber.Ctx, room string) error {
	err := p.kit.Render(c, pagehttp.View{Status: fiber.StatusForbidden, Page: "foreign", Data: roomPath(room), Path: roomPath(room)})
	c.Response().Header.DelAllCookies() // the language switch may have set one
	return err
}

func (p *pages) index(c *fiber.Ctx) error {
	return p.kit.Render(c, pagehttp.View{Page: "index", Data: p.s.line.Rooms()})
}

func (p *pages) room(c *fiber.Ctx) error {
	room, banner := strings.Clone(c.Params("room")), ""
	if c.Request().URI().QueryArgs().Has("return") {
		to, ok := p.s.begin(c, room, strings.Clone(c.Query("return")))
		if c.Locals(returnKey, to); !ok {
			banner = "return"
		}
	}
	return p.show(c, room, fiber.StatusOK, banner)
}

// returnKey is where the answer that begins a visit finds its return address: the
// cookie comes with the next request only.
const returnKey = "usher.return"

func (p *pages) backTo(c *fiber.Ctx, room string) back {
	if to, ok := c.Locals(returnKey).(back); ok {
		return to
	}
	to, _ := p.s.whereTo(c, room, "") // no error without an address that is asked for
	return to
}

// formsTo are the origins to which forms of the room's pages lead.
func (p *pages) formsTo(c *fiber.Ctx, room string) pagehttp.Policy {
	return pagehttp.Policy{FormTo: []string{p.s.bookingURL(room), p.backTo(c, room).address}}
}

// show answers with the waiting page as it stands for this fan. The banner is
// the reason of a refusal, or "".
func (p *pages) show(c *fiber.Ctx, room string, status int, banner string) error {
	info, err := p.s.roomView(room)
	var unknown bool
	if err != nil {
		if unknown = slugOf(err) == "unknown-room"; unknown {
			return p.kit.Render(c, pagehttp.View{Status: fiber.StatusNotFound, Page: "unknown", Data: room})
		}
	}
	p.s.ensureFan(c)
	var doc *placeDoc
	if doc = p.handedOver(c, room); doc != nil {
		info = doc.Room
	} else if d, verr := p.s.view(c, room, p.recallShown(c, room, string(p.s.firstToken(c, room))).Told); verr == nil {
		doc, info = &d, d.Room
	} else if err == nil && slugStatus(verr) >= 500 {
		err = verr
	}
	v := p.waitView(c, room, info, doc, banner)
	p.ticket(c, room, v)
	if err != nil && doc == nil {
		v.State, status = stateTrouble, fiber.StatusServiceUnavailable
		c.Set(fiber.HeaderRetryAfter, "5")
	}
	return p.kit.Render(c, pagehttp.View{
		Status: status, Page: "room", Data: v.finish(p.kit.Text(c)), Path: v.path,
		Policy: p.formsTo(c, room),
	})
}

func (p *pages) join(c *fiber.Ctx, room string) error {
	body, err := joinForm(c)
	created, doc := false, placeDoc{}
	if err == nil {
		if body.Altcha == "" && body.WaitTicket == "" {
			body.WaitTicket = keptTicket(c, room)
		}
		doc, created, err = p.s.join(c, room, body)
	}
	if created {
		p.forgetShown(c, room)
	}
	p.keepTicket(c, room, err)
	if err == nil && p.cookieless(c) {
		return p.keptPlace(c, room, doc, "")
	}
	return p.after(c, room, err)
}

func (p *pages) leave(c *fiber.Ctx, room string) error {
	if err := p.s.leave(c, room); err != nil && slugStatus(err) >= 500 {
		return p.after(c, room, err)
	}
	p.forgetShown(c, room)
	return c.Redirect(roomPath(room)+"?left=1", fiber.StatusSeeOther)
}

// enter claims and, once admitted, answers with the form that carries the pass
// to the box office. Pass and binding are in a POST body and never in an address.
func (p *pages) enter(c *fiber.Ctx, room string) error {
	code, err := formCode(c)
	if err != nil {
		return p.after(c, room, err)
	}
	var pass passDoc
	if code != "" {
		if pass, err = p.enterByCode(c, room, code); err != nil {
			return p.takeMove(c, room) // shows how the place stands, and the code
		}
	} else if pass, err = p.s.claim(c, room, ""); err != nil {
		return p.after(c, room, err)
	}
	p.forgetShown(c, room)
	data := struct {
		passDoc
		Action, Room string
	}{pass, pass.RedirectURL, ""}
	switch pass.Handover {
	case returnto.Cookie: // the page there asks for the pass itself
		return c.Redirect(pass.RedirectURL, fiber.StatusSeeOther)
	case returnto.Post:
		data.Room = room
	default:
		data.Action = withoutQuery(pass.RedirectURL)
	}
	return p.kit.Render(c, pagehttp.View{
		Page: "enter", Path: roomPath(room), Secret: true, Data: data,
		Policy: pagehttp.Policy{FormTo: []string{pass.RedirectURL}},
	})
}

// after goes back to the page by GET, which then shows how things stand; only
// a refusal the page would not explain by itself is told in a banner.
func (p *pages) after(c *fiber.Ctx, room string, err error) error {
	switch slug := slugOf(err); {
	case err == nil, slug == "stand-by", slug == "not-called-yet", slug == "room-closed", slug == "room-paused":
		return c.Redirect(roomPath(room), fiber.StatusSeeOther)
	case slug == "unknown-room":
		return p.show(c, room, fiber.StatusNotFound, "")
	case slug == "too-many-requests":
		return p.show(c, room, fiber.StatusTooManyRequests, "busy")
	case slugStatus(err) >= 500:
		return p.show(c, room, fiber.StatusServiceUnavailable, "trouble")
	}
	return c.Redirect(roomPath(room), fiber.StatusSeeOther)
}

func withoutQuery(address string) string {
	before, _, _ := strings.Cut(address, "?")
	return before
}

// slugOf is the problem type of an error of the shared verbs, "" when it has none.
func slugOf(err error) string {
	var p *basehttp.Problem
	if errors.As(err, &p) {
		return p.Slug
	}
	return ""
}

func slugStatus(err error) int {
	var p *basehttp.Problem
	switch {
	case err == nil:
		return 0
	case errors.As(err, &p):
		return p.Status
	}
	return fiber.StatusInternalServerError
}

// claimWindow is how long a called fan has, as the room's document says.
func claimWindow(r roomDoc) time.Duration {
	if r.ClaimSeconds > 0 {
		return time.Duration(r.ClaimSeconds) * time.Second
	}
	return 2 * time.Minute
}
