package sandboxhttp

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking/payment"
	"usher/internal/basehttp"
)

// The outcomes a fan may choose.
const (
	outcomePaid     = "paid"
	outcomeDeclined = "declined"
	outcomeTwice    = "paid-twice"
	outcomeLate     = "paid-late"
	outcomeNever    = "never"
)

// longestDelay bounds the page's delaySeconds.
const longestDelay = 24 * time.Hour

func (s *Server) payPage(c *fiber.Ctx) error {
	rec, err := s.book.change(s.payment(c), s.opts.Now(), func(*record) error { return nil })
	if err != nil {
		return s.failPage(c, err)
	}
	return s.pages.show(c, s.opts.Merchant, rec)
}

// payment is the id of the payment that the page's address names.
func (s *Server) payment(c *fiber.Ctx) string { return s.book.resolve(strings.Clone(c.Params("id"))) }

// failPage tells a person of a payment that is not there with a page; a program
// that does not ask for one gets the problem document.
func (s *Server) failPage(c *fiber.Ctx, err error) error {
	if errors.Is(err, errNoPayment) && strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return s.pages.missing(c, s.opts.Merchant)
	}
	return problem(err)
}

// pay applies the choice and sends the fan back to the merchant. A second choice
// on one payment changes nothing: the fan is only sent back again.
func (s *Server) pay(c *fiber.Ctx) error {
	field, err := basehttp.Form(c)
	if err != nil {
		return err
	}
	choice := field("outcome")
	delay, err := delaySeconds(field("delaySeconds"))
	if err != nil {
		return err
	}
	now := s.opts.Now()
	var work []delivery
	rec, err := s.book.change(s.payment(c), now, func(r *record) error {
		switch choice {
		case outcomePaid, outcomeDeclined, outcomeTwice, outcomeLate, outcomeNever:
		default:
			return probOutcome.Detailf("outcome is one of paid, declined, paid-twice, paid-late, never.")
		}
		if r.State != string(payment.StatusOpen) {
			return nil
		}
		if err := s.apply(r, choice, now, delay); err != nil {
			return err
		}
		if choice == outcomeLate {
			work = append(work, delivery{paymentID: r.ID})
		}
		for _, e := range r.Events {
			work = append(work, delivery{r.ID, e.ID})
		}
		return nil
	})
	if err != nil {
		return s.failPage(c, err)
	}
	for _, d := range work {
		s.deliver(d)
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("Referrer-Policy", "no-referrer")
	return c.Redirect(rec.ReturnURL, fiber.StatusSeeOther)
}

// apply does what was chosen to an open payment.
func (s *Server) apply(r *record, choice string, now time.Time, delay *time.Duration) error {
	switch choice {
	case outcomeDeclined:
		r.State = string(payment.StatusDeclined)
		return addEvent(r, now, 1)
	case outcomeLate:
		r.State = string(payment.StatusProcessing)
		r.LateAt = s.lateAt(r, now, delay)
		return nil
	}
	r.State, r.CapturedAmount = string(payment.StatusPaid), r.Amount
	switch choice {
	case outcomeNever:
		return nil
	case outcomeTwice:
		return addEvent(r, now, 2)
	}
	return addEvent(r, now, 1)
}

// delaySeconds is nil when the field is empty.
func delaySeconds(v string) (*time.Duration, error) {
	if v == "" {
		return nil, nil //nolint:nilnil // absent is a value of its own here
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > int(longestDelay/time.Second) {
		return nil, probOutcome.Detailf("delaySeconds is a whole number from 0 to %d.", int(longestDelay/time.Second))
	}
	d := time.Duration(n) * time.Second
	return &d, nil
}

// origin is what the page's policy must allow a form to end at: browsers apply
// form-action to the redirect after the form as well.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s://%s", u.Scheme, u.Host)
}
