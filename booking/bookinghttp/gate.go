package bookinghttp

import (
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"usher/booking"
	"usher/booking/gate"
	"usher/booking/payment"
	"usher/internal/basehttp"
)

// gateRole may scan tickets and nothing else.
const gateRole = "gate"

// longestCode is more than any ticket's.
const longestCode = 512

var errTicketInvalid = basehttp.NewProblem(422, "ticket-invalid", "This is no ticket of ours")

func (s *Server) registerGate(r fiber.Router) {
	if s.opts.Gate == nil {
		return
	}
	r.Post("/v1/tickets/scan", s.scanTicket)
	r.Get("/v1/showtimes/:id/revoked-tickets", s.revokedTickets)
	r.Get("/.well-known/ticket-keys.json", s.ticketKeys)
}

// ticketCode is what the ticket's QR code says.
func (s *Server) ticketCode(showtimeID string, t payment.Ticket) string {
	id, err := uuid.Parse(t.ID)
	if s.opts.Gate == nil || err != nil {
		return t.Code
	}
	return s.opts.Gate.Code(gate.Ticket{ID: id, ShowtimeID: showtimeID, Seat: t.SeatCode})
}

type scanBody struct {
	Code       string `json:"code"`
	ShowtimeID string `json:"showtimeId"`
}

// entryDoc is what a scanner shows.
type entryDoc struct {
	Result     string `json:"result"` // valid, already-in, refunded or wrong-showtime
	TicketID   string `json:"ticketId"`
	ShowtimeID string `json:"showtimeId"` // the ticket's
	Title      string `json:"title"`
	StartsAt   stamp  `json:"startsAt"`
	Seat       string `json:"seat"`
	Section    string `json:"section"`
	Row        string `json:"row"`
	Number     string `json:"number"`
	Standing   bool   `json:"standing"`
	PriceClass string `json:"priceClass"`
	EnteredAt  *stamp `json:"enteredAt,omitempty"`
	EnteredBy  string `json:"enteredBy,omitempty"` // the scanner's name
}

// scanTicket lets a ticket in. An Idempotency-Key names the scan: repeated under it, when
// the answer was lost, it is told the same.
func (s *Server) scanTicket(c *fiber.Ctx) error {
	actor, err := s.operator(c, gateRole, refundRole)
	if err != nil {
		return err
	}
	key, err := basehttp.IdempotencyKey(c, false)
	if err != nil {
		return err
	}
	var body scanBody
	if err := basehttp.DecodeJSON(c, &body, false); err != nil {
		return err
	}
	if body.Code == "" || body.ShowtimeID == "" || len(body.Code) > longestCode {
		return basehttp.ErrInvalidBody.Detailf("code and showtimeId are needed; a code has at most %d letters.", longestCode)
	}
	ctx, cancel := s.within()
	defer cancel()
	e, err := s.opts.Gate.Scan(ctx, gate.Scan{Code: strings.TrimSpace(body.Code), ShowtimeID: body.ShowtimeID, Scanner: actor, Key: key})
	if err != nil {
		return s.gateFail(err)
	}
	d := entryDoc{
		Result: e.Result, TicketID: e.TicketID, ShowtimeID: e.ShowtimeID, Title: e.Title, StartsAt: stamp(e.StartsAt), Seat: e.Seat,
		Section: e.Section, Row: e.Row, Number: e.Number, Standing: e.Standing, PriceClass: e.PriceClass, EnteredBy: e.EnteredBy,
	}
	if !e.EnteredAt.IsZero() {
		at := stamp(e.EnteredAt)
		d.EnteredAt = &at
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(d)
}

// revokedTickets is the signed list for scanners without a network.
func (s *Server) revokedTickets(c *fiber.Ctx) error {
	if _, err := s.operator(c, gateRole, refundRole); err != nil {
		return err
	}
	ctx, cancel := s.within()
	defer cancel()
	list, err := s.opts.Gate.Revoked(ctx, strings.Clone(c.Params("id")))
	if err != nil {
		return s.gateFail(err)
	}
	c.Set(fiber.HeaderContentType, "application/jwt")
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.SendString(list)
}

func (s *Server) ticketKeys(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "application/jwk-set+json")
	c.Set(fiber.HeaderCacheControl, "public, max-age=3600")
	return c.Send(s.opts.Gate.Keys())
}

func (s *Server) gateFail(err error) error {
	switch {
	case errors.Is(err, gate.ErrNoTicket):
		return errTicketInvalid.Detailf("Nobody comes in by it. Nothing was changed.")
	case errors.Is(err, gate.ErrUnknownShowtime):
		return s.fail(booking.ErrUnknownShowtime)
	}
	return s.fail(err)
}
