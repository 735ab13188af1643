package bookinghttp

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
)

func (s *Server) registerShowtimes(r fiber.Router) {
	r.Get("/v1/showtimes", s.listShowtimes)
	r.Get("/v1/showtimes/:showtime", s.readShowtime)
	r.Get("/v1/showtimes/:showtime/seats", s.seatMap)
}

type showtimeDoc struct {
	ID         string       `json:"id"` // the same as showtimeId: the {id} of the addresses
	ShowtimeID string       `json:"showtimeId"`
	Room       string       `json:"room"`
	Event      eventDoc     `json:"event"`
	Venue      venueDoc     `json:"venue"`
	StartsAt   stamp        `json:"startsAt"`
	Currency   string       `json:"currency"`
	Limits     limitsDoc    `json:"limits"`
	Prices     []priceClass `json:"priceClasses"`
}

type eventDoc struct {
	EventID  string `json:"eventId"`
	Title    string `json:"title"`
	Subtitle string `json:"subtitle,omitempty"`
	Kind     string `json:"kind"`
}

type venueDoc struct {
	Name     string `json:"name"`
	City     string `json:"city,omitempty"`
	Timezone string `json:"timezone"`
}

type limitsDoc struct {
	MaxPerHold     int `json:"maxPerHold"`
	MaxPerCustomer int `json:"maxPerCustomer,omitempty"` // absent: no limit
	HoldSeconds    int `json:"holdSeconds"`
}

type priceClass struct {
	Code   string `json:"code"`
	Name   string `json:"name"`
	Amount int64  `json:"amount"` // minor units
	Color  string `json:"color,omitempty"`
}

func docOf(st booking.Showtime) showtimeDoc {
	prices := []priceClass{}
	for _, p := range st.PriceClasses {
		prices = append(prices, priceClass(p))
	}
	return showtimeDoc{
		ID: st.ID, ShowtimeID: st.ID, Room: st.Room, StartsAt: stamp(st.StartsAt), Currency: st.Currency, Prices: prices,
		Event:  eventDoc{EventID: st.EventID, Title: st.Title, Subtitle: st.Subtitle, Kind: st.Kind},
		Venue:  venueDoc{Name: st.Venue, City: st.City, Timezone: st.Timezone},
		Limits: limitsDoc{MaxPerHold: st.MaxPerHold, MaxPerCustomer: st.MaxPerCustomer, HoldSeconds: int(st.HoldTime.Seconds())},
	}
}

func (s *Server) listShowtimes(c *fiber.Ctx) error {
	room := strings.Clone(c.Query("room"))
	if room != "" && !booking.ValidID(room) {
		return s.fail(booking.ErrUnknownRoom)
	}
	ctx, cancel := s.within()
	defer cancel()
	list, err := s.office.Showtimes(ctx, room)
	if err != nil {
		return s.fail(err)
	}
	if len(list) == 0 && room != "" { // a room without a showtime is no error, an unknown one is
		if _, err := s.office.Rooms().Get(ctx, room); err != nil {
			return s.fail(err)
		}
	}
	docs := make([]showtimeDoc, 0, len(list))
	for _, st := range list {
		docs = append(docs, docOf(st))
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=1")
	return c.JSON(fiber.Map{"showtimes": docs})
}

func (s *Server) readShowtime(c *fiber.Ctx) error {
	ctx, cancel := s.within()
	defer cancel()
	st, err := s.office.Showtime(ctx, strings.Clone(c.Params("showtime")))
	if err != nil {
		return s.fail(err)
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=1")
	return c.JSON(docOf(st))
}

// seatMap answers the map; its ETag is of the content, and a compressed body has
// one of its own, as a strong validator must.
func (s *Server) seatMap(c *fiber.Ctx) error {
	ctx, cancel := s.within()
	defer cancel()
	m, err := s.office.SeatMap(ctx, strings.Clone(c.Params("showtime")))
	if err != nil {
		return s.fail(err)
	}
	zipped := acceptsGzip(c.Get(fiber.HeaderAcceptEncoding))
	zipTag := strings.TrimSuffix(m.ETag, `"`) + `-gzip"`
	tag := m.ETag
	if zipped {
		tag = zipTag
	}
	c.Set(fiber.HeaderETag, tag)
	c.Set(fiber.HeaderCacheControl, "public, max-age=1")
	c.Vary(fiber.HeaderAcceptEncoding)
	if known := c.Get(fiber.HeaderIfNoneMatch); known != "" && (tagMatches(known, m.ETag) || tagMatches(known, zipTag)) {
		return c.SendStatus(fiber.StatusNotModified)
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	if !zipped {
		return c.Send(m.JSON())
	}
	c.Set(fiber.HeaderContentEncoding, "gzip")
	return c.Send(m.Gzip())
}

// tagMatches compares weakly, as RFC 9110 wants it for If-None-Match.
func tagMatches(header, tag string) bool {
	for part := range strings.SplitSeq(header, ",") {
		part = strings.TrimPrefix(strings.TrimSpace(part), "W/")
		if part == tag || part == "*" {
			return true
		}
	}
	return false
}

// acceptsGzip reads Accept-Encoding; "gzip;q=0" is a no.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		q, isQ := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		if !isQ {
			return true
		}
		weight, err := strconv.ParseFloat(q, 64)
		return err == nil && weight > 0
	}
	return false
}
