package queuehttp

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/pagehttp"
)

// drawView is what templates/draw.html shows.
type drawView struct {
	Room, Title string
	State       string
	Draw        drawDoc
	Done        bool
	Gathers     time.Time
	Opens       time.Time
	Drawn       time.Time
	EntriesURL  string
	Boot        string // JSON for draw.js
}

// draw shows a room's draw, and lets a browser check it: the seed against the
// commitment, the list against its digest, and a place's number.
func (p *pages) draw(c *fiber.Ctx) error {
	room := strings.Clone(c.Params("room"))
	d, info, err := p.s.drawOf(room)
	switch slug := slugOf(err); {
	case slug == "unknown-room" || slug == "no-draw":
		return p.kit.Render(c, pagehttp.View{Status: fiber.StatusNotFound, Page: "unknown", Data: room})
	case err != nil:
		return err
	}
	d.EntriesURL = "/v1/rooms/" + room + "/draw/entries" // of the listener that served the page
	boot, err := json.Marshal(struct {
		publishedDraw
		Words json.RawMessage `json:"words"`
		Lang  string          `json:"lang"`
	}{d, json.RawMessage(p.checks[pagehttp.Negotiate(c).Code]), pagehttp.Negotiate(c).Code})
	if err != nil {
		return err
	}
	v := drawView{
		Room: room, Title: info.Title, State: info.State, Draw: d.drawDoc, Done: d.DrawnAt != nil, EntriesURL: d.EntriesURL,
		Gathers: inZone(info.GathersAt, info.Timezone), Opens: inZone(info.OpensAt, info.Timezone), Drawn: inZone(d.DrawnAt, info.Timezone),
		Boot: string(boot),
	}
	if v.Title == "" {
		v.Title = room
	}
	return p.kit.Render(c, pagehttp.View{Page: "draw", Data: v})
}

// inZone is a stamp on the event's clock; the zero time without one.
func inZone(at *string, zone string) time.Time {
	if at == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return time.Time{}
	}
	if loc, err := time.LoadLocation(zone); err == nil {
		t = t.In(loc)
	}
	return t
}
