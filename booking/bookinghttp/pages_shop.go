package bookinghttp

import (
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/internal/pagehttp"
)

// shopView is the page of one showtime. What its script needs to know travels in
// Page, as JSON in a data block; the seats themselves come from the API.
type shopView struct {
	Title, Subtitle string
	Place           place
	Showtimes       []showtimeLink
	Page            shopPage
}

type showtimeLink struct {
	Href, Text string
	Current    bool
}

type shopPage struct {
	Lang     string         `json:"lang"`
	Messages map[string]any `json:"messages"`
	LineURL  string         `json:"lineUrl"`
	Session  bool           `json:"session"` // false: look, but choose nothing
	Showtime shopShowtime   `json:"showtime"`
}

type shopShowtime struct {
	ID         string `json:"id"`
	MaxPerHold int    `json:"maxPerHold"`
}

// scriptMessages are the parts of the wording that the script writes.
var scriptMessages = []string{"section.", "list.", "standing.", "tray.", "best.", "clock.", "visit.", "say.", "no.", "notice.", "act.", "shape.", "where.", "seat."}

// book shows the shop of a room. Looking needs no session; the page then says how to come in.
func (p *pages) book(c *fiber.Ctx) error {
	ctx, cancel := p.within()
	defer cancel()
	shows, err := p.office.Showtimes(ctx, strings.Clone(c.Params("room")))
	if err != nil {
		return p.fail(err)
	}
	show := chosen(shows, c.Query("showtime"))
	if show == nil {
		return p.missing(c)
	}
	sess, err := p.session(c)
	if err != nil && !noSession(err) {
		return p.fail(err)
	}
	text := p.kit.Text(c)
	return p.kit.Render(c, pagehttp.View{Page: "book", Data: shopView{
		Title: show.Title, Subtitle: show.Subtitle,
		Place:     placeOf(text, show.StartsAt, show.Timezone, show.Venue, show.City),
		Showtimes: showtimeLinks(text, shows, show),
		Page: shopPage{
			Lang: text.Lang.Code, Messages: text.ForScript(scriptMessages...), LineURL: p.lineURL(show.Room),
			Session:  err == nil && sess.Room == show.Room && !sess.Ended,
			Showtime: shopShowtime{ID: show.ID, MaxPerHold: show.MaxPerHold},
		},
	}})
}

// chosen is the showtime asked for, or the first; nil when there is none.
func chosen(shows []booking.Showtime, id string) *booking.Showtime {
	for i := range shows {
		if shows[i].ID == id || id == "" {
			return &shows[i]
		}
	}
	return nil
}

// showtimeLinks names the showtimes by their hour, and by their day too when they
// are not all on one.
func showtimeLinks(text *pagehttp.Text, shows []booking.Showtime, now *booking.Showtime) []showtimeLink {
	places := make([]place, len(shows))
	oneDay := true
	for i, s := range shows {
		places[i] = placeOf(text, s.StartsAt, s.Timezone, s.Venue, s.City)
		oneDay = oneDay && places[i].Day == places[0].Day
	}
	links := make([]showtimeLink, len(shows))
	for i, s := range shows {
		links[i] = showtimeLink{Href: "/book/" + url.PathEscape(s.Room) + "?showtime=" + url.QueryEscape(s.ID), Text: places[i].Hour, Current: s.ID == now.ID}
		if !oneDay {
			links[i].Text = places[i].Day + ", " + places[i].Hour
		}
	}
	return links
}
