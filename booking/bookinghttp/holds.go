package bookinghttp

import (
	"context"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/internal/basehttp"
)

func (s *Server) registerHolds(r fiber.Router) {
	r.Post("/v1/showtimes/:showtime/holds", s.takeHold)
	r.Get("/v1/holds/:hold", s.readHold)
	r.Delete("/v1/holds/:hold", s.releaseHold)
}

type holdDoc struct {
	HoldID     string   `json:"holdId"`
	ShowtimeID string   `json:"showtimeId"`
	Seats      []string `json:"seats"`
	Amount     int64    `json:"amount"` // minor units
	Currency   string   `json:"currency"`
	State      string   `json:"state"`
	ExpiresAt  stamp    `json:"expiresAt"`
}

func holdDocOf(h booking.Hold) holdDoc {
	return holdDoc{
		HoldID: h.ID, ShowtimeID: h.ShowtimeID, Seats: h.Seats, Amount: h.Amount, Currency: h.Currency,
		State: h.State, ExpiresAt: stamp(h.ExpiresAt),
	}
}

func (s *Server) takeHold(c *fiber.Ctx) error {
	sess, err := s.session(c)
	if err != nil {
		return err
	}
	var body struct {
		Seats []string `json:"seats"`
		Best  *struct {
			Count   int    `json:"count"`
			Section string `json:"section"`
		} `json:"best"`
	}
	if err := basehttp.DecodeJSON(c, &body, false); err != nil {
		return err
	}
	if body.Best != nil && body.Seats != nil {
		return basehttp.ErrInvalidBody.Detailf("Name seats or ask for the best ones, not both.")
	}
	key, err := basehttp.IdempotencyKey(c, body.Best != nil)
	if err != nil {
		return err
	}
	r := booking.HoldRequest{ShowtimeID: strings.Clone(c.Params("showtime")), Seats: body.Seats, IdempotencyKey: key}
	if body.Best != nil {
		r.Best = &booking.Best{Count: body.Best.Count, Section: body.Best.Section}
	}
	ctx, cancel := s.within()
	defer cancel()
	h, created, err := s.office.Hold(ctx, sess, r)
	if err != nil {
		return s.fail(err)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderLocation, "/v1/holds/"+h.ID)
	return c.Status(created201(created)).JSON(holdDocOf(h))
}

func (s *Server) readHold(c *fiber.Ctx) error {
	sess, err := s.reader(c)
	if err != nil {
		return err
	}
	ctx, cancel := s.within()
	defer cancel()
	h, err := s.office.GetHold(ctx, sess, strings.Clone(c.Params("hold")))
	if err != nil {
		return s.fail(err)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(holdDocOf(h))
}

// releaseHold gives seats back at once, also those whose payment page is open:
// the desk has the provider close it first.
func (s *Server) releaseHold(c *fiber.Ctx) error {
	sess, err := s.reader(c)
	if err != nil {
		return err
	}
	id := strings.Clone(c.Params("hold"))
	ctx, cancel := s.within()
	defer cancel()
	err = s.office.ReleaseHold(ctx, sess, id)
	if errors.Is(err, booking.ErrHoldNotOpen) && s.desk != nil {
		err = s.releasePaying(sess, id)
	}
	if err != nil {
		return s.fail(err)
	}
	return c.SendStatus(fiber.StatusNoContent)
}

// releasePaying may have to wait for the provider, as a checkout does.
func (s *Server) releasePaying(sess booking.Session, holdID string) error {
	ctx, cancel := context.WithTimeout(context.Background(), checkoutTimeout)
	defer cancel()
	return s.desk.ReleaseHold(ctx, sess, holdID)
}
