package bookinghttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	go_qr "github.com/piglig/go-qr"

	"usher/booking/payment"
	"usher/internal/basehttp"
)

const (
	// checkoutTimeout is longer than other calls': the provider may take ten
	// seconds to answer, and giving up earlier would only repeat the question.
	checkoutTimeout = 14 * time.Second
	// refundRole may give money back.
	refundRole = "boxoffice"
	// anyRole is what every operator has: it tells a stranger, or a fan with a
	// session's token, from an operator who may not do this.
	anyRole = "viewer"
)

func (s *Server) registerPayments(r fiber.Router) {
	if s.desk == nil {
		return
	}
	r.Post("/v1/holds/:id/checkout", s.checkout)
	r.Post("/v1/payments/callback", s.callback)
	r.Get("/v1/bookings/:id", s.getBooking)
	r.Post("/v1/bookings/:id/refund", s.refundBooking)
	r.Get("/v1/bookings/:id/tickets/:ticket/qr.svg", s.ticketQR)
}

// checkoutBody is empty today; a field nobody knows is refused.
type checkoutBody struct{}

func (s *Server) checkout(c *fiber.Ctx) error {
	sess, err := s.session(c)
	if err != nil {
		return s.fail(err)
	}
	key, err := basehttp.IdempotencyKey(c, true)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkoutTimeout)
	defer cancel()
	id, body := strings.Clone(c.Params("id")), bytes.Clone(c.Request().Body())
	if err := basehttp.DecodeJSON(c, &checkoutBody{}, true); err != nil {
		// A key used for another body is that first: the fan's program would
		// otherwise correct the body and try the spent key again.
		if conflict := s.desk.KeyConflict(ctx, sess, id, key, body); conflict != nil {
			return s.fail(conflict)
		}
		return err
	}
	out, created, err := s.desk.Checkout(ctx, sess, id, key, body)
	if err != nil {
		return s.failCheckout(err)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(createdStatus(created)).JSON(checkoutDoc{
		BookingID: out.BookingID, PaymentID: out.PaymentID, PaymentURL: out.PaymentURL, ExpiresAt: stamp(out.ExpiresAt),
	})
}

// failCheckout names the seats a lost hold has lost.
func (s *Server) failCheckout(err error) error {
	told := s.fail(err)
	var lost *payment.HoldLostError
	var p *basehttp.Problem
	if errors.As(err, &lost) && errors.As(told, &p) {
		return p.With("seats", lost.Seats)
	}
	return told
}

func createdStatus(created bool) int {
	if created {
		return fiber.StatusCreated
	}
	return fiber.StatusOK
}

type checkoutDoc struct {
	BookingID  string `json:"bookingId"`
	PaymentID  string `json:"paymentId"`
	PaymentURL string `json:"paymentUrl"`
	ExpiresAt  stamp  `json:"expiresAt"`
}

// callback is the provider's. The signature is over the bytes as they came, so
// nothing decodes them before; 200 means: committed, you may forget it.
func (s *Server) callback(c *fiber.Ctx) error {
	ctx, cancel := s.within()
	defer cancel()
	header := func(name string) string { return c.Get(name) }
	if err := s.desk.Callback(ctx, header, bytes.Clone(c.Request().Body())); err != nil {
		return s.fail(err)
	}
	return c.JSON(fiber.Map{"received": true})
}

func (s *Server) getBooking(c *fiber.Ctx) error {
	sess, err := s.reader(c)
	if err != nil {
		return s.fail(err)
	}
	ctx, cancel := s.within()
	defer cancel()
	b, err := s.desk.Booking(ctx, sess, strings.Clone(c.Params("id")))
	if err != nil {
		return s.fail(err)
	}
	c.Set(fiber.HeaderCacheControl, "private, no-store")
	return c.JSON(s.bookingDoc(b))
}

type refundBody struct {
	Tickets []string `json:"tickets"`
	Reason  string   `json:"reason"`
}

// longestReason bounds what an operator may write into the books.
const longestReason = 200

func (s *Server) refundBooking(c *fiber.Ctx) error {
	actor, err := s.operator(c, refundRole)
	if err != nil {
		return err
	}
	var body refundBody
	if err := basehttp.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	switch {
	case body.Tickets != nil && len(body.Tickets) == 0:
		// An empty list is more likely a program's mistake than a wish to give
		// everything back.
		return basehttp.ErrInvalidBody.Detailf("tickets must not be an empty list; leave it out for the whole booking.")
	case len(body.Reason) > longestReason || strings.ContainsRune(body.Reason, 0):
		return basehttp.ErrInvalidBody.Detailf("reason has at most %d characters of text.", longestReason)
	}
	ctx, cancel := s.within()
	defer cancel()
	b, err := s.desk.Refund(ctx, actor, strings.Clone(c.Params("id")), payment.RefundOrder{Tickets: body.Tickets, Reason: body.Reason})
	if err != nil {
		return s.fail(err)
	}
	return c.JSON(s.bookingDoc(b).withoutCodes())
}

// operator is who bears the request's token, and has one of the roles.
func (s *Server) operator(c *fiber.Ctx, roles ...string) (actor string, err error) {
	token := basehttp.BearerToken(c)
	if s.opts.OperatorAuth == nil || token == "" {
		return "", basehttp.ErrUnauthorized
	}
	for _, role := range roles {
		if actor, ok := s.opts.OperatorAuth(token, role); ok {
			return actor, nil
		}
	}
	if _, known := s.opts.OperatorAuth(token, anyRole); known {
		return "", basehttp.ErrForbidden.Detailf("The role %s is needed.", strings.Join(roles, " or "))
	}
	c.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="usher"`)
	return "", basehttp.ErrUnauthorized.Detailf("Send an operator's token as Bearer.")
}

func (s *Server) ticketQR(c *fiber.Ctx) error {
	sess, err := s.reader(c)
	if err != nil {
		return s.fail(err)
	}
	ctx, cancel := s.within()
	defer cancel()
	t, showtime, err := s.desk.ValidTicket(ctx, sess, strings.Clone(c.Params("id")), strings.Clone(c.Params("ticket")))
	if err != nil {
		return s.fail(err)
	}
	svg, err := qrSVG(s.ticketCode(showtime, t))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "image/svg+xml")
	// Short: a refunded ticket's code must not live on in the browser for long.
	c.Set(fiber.HeaderCacheControl, "private, max-age=60")
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'")
	return c.Send(svg)
}

// qrSVG draws code dark on light with the quiet border scanners need.
func qrSVG(code string) ([]byte, error) {
	qr, err := go_qr.EncodeText(code, go_qr.Medium)
	if err != nil {
		return nil, fmt.Errorf("bookinghttp: qr: %w", err)
	}
	svg, err := qr.ToSVGBytes(go_qr.NewQrCodeImgConfig(10, 4, go_qr.WithOptimalSVG()))
	if err != nil {
		return nil, fmt.Errorf("bookinghttp: qr: %w", err)
	}
	return svg, nil
}
