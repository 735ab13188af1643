package catalog

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"usher/booking"
)

func (r *reader) showtime(n *yaml.Node, path string, f *File, venue *Venue) Showtime {
	o := r.object(n, path)
	s := Showtime{Line: n.Line, ID: o.id("id"), Room: o.id("room")}
	o.unique(s.ID, r.seen("showtime"))
	var room *Room
	if i := slices.IndexFunc(f.Rooms, func(room Room) bool { return room.ID == s.Room }); i >= 0 {
		room = &f.Rooms[i]
	} else if s.Room != "" {
		o.fault("room", "there is no room %q in this file", s.Room)
	}
	loc := time.UTC
	if venue != nil && venue.location != nil {
		loc = venue.location
	}
	if text := o.text("startsAt", true); text != "" {
		s.Starts = o.start("startsAt", text, loc)
	}
	if room != nil && room.OpensAt != nil && !s.Starts.At.IsZero() && !room.OpensAt.Before(s.Starts.At) {
		o.fault("startsAt", "is %s, not after the opening of room %s at %s",
			s.Starts.At.UTC().Format(time.RFC3339), room.ID, room.OpensAt.UTC().Format(time.RFC3339))
	}
	o.done()
	return s
}

var relative = regexp.MustCompile(`^\+(\d{1,4})d (\d{1,2}):(\d{2})$`)

func (o *object) start(key, text string, loc *time.Location) Start {
	if m := relative.FindStringSubmatch(text); m != nil {
		s := Start{Relative: true}
		s.InDays, _ = strconv.Atoi(m[1])
		s.Hour, _ = strconv.Atoi(m[2])
		s.Minute, _ = strconv.Atoi(m[3])
		if s.Hour > 23 || s.Minute > 59 || s.InDays > 3650 {
			o.fault(key, "is %q, no such time of day, or more than 3650 days ahead", text)
		}
		return s
	}
	t, err := booking.ParseTime(text, loc)
	switch {
	case err != nil && !errors.Is(err, booking.ErrNotATime):
		o.fault(key, "%s", err)
	case err != nil:
		o.fault(key, "is %q, must be 2026-12-24T20:00:00+01:00, 2026-12-24 20:00 or +21d 20:00", text)
	case absurd(t):
		o.fault(key, "the year %d is not between %d and %d", t.Year(), earliestYear, latestYear)
	default:
		return Start{At: t}
	}
	return Start{}
}

// on is the start when the first apply happens at now.
func (s Start) on(now time.Time, loc *time.Location) time.Time {
	if !s.Relative {
		return s.At
	}
	y, m, d := now.In(loc).Date()
	return time.Date(y, m, d+s.InDays, s.Hour, s.Minute, 0, 0, loc)
}
