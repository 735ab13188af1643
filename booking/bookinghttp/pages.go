package bookinghttp

import (
	"embed"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/internal/basehttp"
	"usher/internal/pagehttp"
)

//go:embed all:templates static messages.*.yaml
var pageFiles embed.FS

// pages are the booking pages: a demonstration of what an integrator builds on
// the API. They hold no state of their own and take no decision: a page shows what
// the office and the desk say, and its script calls the same API as everybody.
//
// What was decided, and why. The shop is drawn by its script, for a map without
// one is no map; a booking is written whole by its template, for a ticket must
// open on any device, and its script only asks for the same page again. Price
// classes have the page's own six colours and not the catalog's: numbers stand on
// them and must be readable in light and dark. A seat's state has an outline of
// its own, so colour is never needed. A stadium is drawn section by section, the
// nearest first: twenty thousand nodes would not move smoothly on a phone. Keys of
// checkouts are stored before they are sent, so that a reload pays once.
type pages struct {
	*Server
	kit *pagehttp.Kit
}

func (s *Server) registerPages(r fiber.Router) {
	kit, err := pagehttp.New(pagehttp.Options{Files: pageFiles, SecureCookies: s.opts.SecureCookies})
	if err != nil {
		panic("bookinghttp: the embedded pages: " + err.Error()) // a template or a message is missing: a programmer's mistake
	}
	p := &pages{Server: s, kit: kit}
	kit.Register(r)
	r.Get("/", p.index)
	r.Get("/enter", p.enterPage)
	r.Get("/book/:room", p.book)
	r.Get("/bookings/:booking", p.bookingPage)
}

// lineURL is the waiting page of a room.
func (p *pages) lineURL(room string) string {
	return p.opts.EdgeURL + "/rooms/" + url.PathEscape(room)
}

// place says when and where in the words of the page's language and by the clock
// of the venue: a fan abroad must not read the hour of home.
type place struct {
	Day, Hour, Where string
}

func placeOf(text *pagehttp.Text, at time.Time, zone, venue, city string) place {
	if loc, err := time.LoadLocation(zone); err == nil {
		at = at.In(loc)
	}
	if city != "" {
		venue += ", " + city
	}
	return place{Day: text.Date(at), Hour: text.Clock(at), Where: venue}
}

// enterView explains what to do without a session; the POST is the API's.
type enterView struct {
	LineURL, Title string
	Why            string // one of enterReasons, or ""
}

func (p *pages) enterPage(c *fiber.Ctx) error {
	room := strings.Clone(c.Query("room"))
	if sess, err := p.session(c); err == nil && (room == "" || room == sess.Room) {
		return c.Redirect("/book/"+url.PathEscape(sess.Room), fiber.StatusSeeOther)
	}
	ctx, cancel := p.within()
	defer cancel()
	why := strings.Clone(c.Query("why"))
	if !slices.Contains(enterReasons, why) {
		why = ""
	}
	view := enterView{LineURL: p.opts.EdgeURL + "/", Why: why}
	if room != "" {
		shows, err := p.office.Showtimes(ctx, room)
		if err != nil {
			return p.fail(err)
		}
		if len(shows) == 0 {
			return p.missing(c)
		}
		view = enterView{LineURL: p.lineURL(room), Title: shows[0].Title, Why: why}
	}
	return p.kit.Render(c, pagehttp.View{Page: "enter", Data: view})
}

// indexItem is one event of one room.
type indexItem struct {
	Title, Subtitle   string
	Place             place
	LineURL, ShopURL  string
	Currency          string
	From              int64 // lowest price, minor units
	More              int   // showtimes besides the first
	Kind, Room, Event string
}

func (p *pages) index(c *fiber.Ctx) error {
	ctx, cancel := p.within()
	defer cancel()
	shows, err := p.office.Showtimes(ctx, "")
	if err != nil {
		return p.fail(err)
	}
	return p.kit.Render(c, pagehttp.View{Page: "index", Data: p.indexItems(p.kit.Text(c), shows)})
}

func (p *pages) indexItems(text *pagehttp.Text, shows []booking.Showtime) []*indexItem {
	var items []*indexItem
	seen := map[[2]string]*indexItem{}
	for _, s := range shows {
		if first := seen[[2]string{s.Room, s.EventID}]; first != nil {
			first.More++
			continue
		}
		item := &indexItem{
			Title: s.Title, Subtitle: s.Subtitle, Kind: s.Kind, Room: s.Room, Event: s.EventID, Currency: s.Currency,
			Place:   placeOf(text, s.StartsAt, s.Timezone, s.Venue, s.City),
			LineURL: p.lineURL(s.Room), ShopURL: "/book/" + url.PathEscape(s.Room),
		}
		for i, class := range s.PriceClasses {
			if i == 0 || class.Amount < item.From {
				item.From = class.Amount
			}
		}
		seen[[2]string{s.Room, s.EventID}] = item
		items = append(items, item)
	}
	return items
}

// missing is the page for an address that leads nowhere. It is the same for what
// does not exist and for what belongs to somebody else.
func (p *pages) missing(c *fiber.Ctx) error {
	return p.kit.Render(c, pagehttp.View{Status: fiber.StatusNotFound, Page: "missing", Path: "/"})
}

// noSession tells an answer that only means "nobody we know" from a real fault.
func noSession(err error) bool {
	var problem *basehttp.Problem
	return errors.As(err, &problem) && problem.Status == fiber.StatusUnauthorized
}
