package catalog

import (
	"errors"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"usher/booking"
)

func (r *reader) room(n *yaml.Node, path string) Room {
	o := r.object(n, path)
	room := Room{
		Line: n.Line, ID: o.id("id"), Title: o.text("title", true),
		Mode:          o.choice("mode", "fifo", "draw", "passthrough", "reject"),
		Valve:         o.choice("valve", "fixed", "adaptive"),
		State:         o.choice("state", "open", "paused", "closed", "scheduled"),
		RatePerMinute: int(o.integer("ratePerMinute", true, 0, 1_000_000, 0)),
		Cap:           int(o.integer("cap", true, 0, 1_000_000, 0)),
	}
	if share := int(o.integer("priorityShare", false, 0, booking.MaxPriorityShare, -1)); share >= 0 {
		room.PriorityShare = &share
	}
	o.unique(room.ID, r.seen("room"))
	r.schedule(o, &room)
	if room.Mode == "draw" {
		switch {
		case !o.has("state"):
			room.State = "scheduled"
		case room.State == "open" || room.State == "paused":
			o.fault("state", "is %q; a room that is drawn begins scheduled (or closed) and opens by its drawing", room.State)
		}
	}
	o.done()
	return room
}

// schedule reads when a room gathers and opens, on the event's clock or as instants.
func (r *reader) schedule(o *object, room *Room) {
	room.Timezone = o.text("timezone", false)
	loc := o.location(room.Timezone)
	room.GathersAt = o.instant("gathersAt", loc)
	room.OpensAt = o.instant("opensAt", loc)
	switch {
	case room.GathersAt == nil:
	case room.Mode != "draw":
		o.fault("gathersAt", "is for rooms of mode draw, not %s", room.Mode)
	case room.OpensAt != nil && !room.GathersAt.Before(*room.OpensAt):
		o.fault("gathersAt", "is %s, not before the opening at %s",
			room.GathersAt.UTC().Format(time.RFC3339), room.OpensAt.UTC().Format(time.RFC3339))
	}
	if room.Timezone == "" {
		room.Timezone = "UTC"
	}
}

// instant reads a time; loc nil means that the file names no clock.
func (o *object) instant(key string, loc *time.Location) *time.Time {
	s := o.text(key, false)
	if s == "" {
		return nil
	}
	if loc == nil {
		loc = time.UTC
		if !o.has("timezone") && !strings.Contains(s, "T") {
			if _, err := booking.ParseTime(s, loc); err == nil {
				o.fault(key, "is %q, a time on a clock; say on whose by timezone, or write an instant such as 2026-12-01T09:00:00Z", s)
				return nil
			}
		}
	}
	t, err := booking.ParseTime(s, loc)
	switch {
	case errors.Is(err, booking.ErrNotATime):
		o.fault(key, "is %q, must be an instant such as 2026-12-01T09:00:00Z, or 2026-12-01 09:00 beside a timezone", s)
	case err != nil:
		o.fault(key, "%s", err)
	case absurd(t):
		o.fault(key, "the year %d is not between %d and %d", t.Year(), earliestYear, latestYear)
	default:
		return &t
	}
	return nil
}
