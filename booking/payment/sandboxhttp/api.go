package sandboxhttp

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking/payment"
	"usher/booking/payment/sandbox"
	"usher/internal/basehttp"
)

var (
	probUnknown  = basehttp.NewProblem(404, "unknown-payment", "There is no such payment")
	probInvalid  = basehttp.NewProblem(422, "invalid-payment", "The payment is not acceptable")
	probKey      = basehttp.NewProblem(422, "idempotency-key-reused", "The idempotency key was used for another request")
	probRefund   = basehttp.NewProblem(409, "refund-too-large", "More than was taken cannot be given back")
	probUncaught = basehttp.NewProblem(409, "nothing-taken", "Nothing was taken on this payment")
	probOutcome  = basehttp.NewProblem(400, "unknown-outcome", "Choose one of the outcomes")
)

func problem(err error) error {
	switch {
	case errors.Is(err, errNoPayment):
		return probUnknown
	case errors.Is(err, errKeyReused):
		return probKey
	case errors.Is(err, errOverRefund):
		return probRefund
	case errors.Is(err, errNothingTaken):
		return probUncaught
	}
	return err
}

func (s *Server) create(c *fiber.Ctx) error {
	var b sandbox.CreateBody
	if err := basehttp.DecodeJSON(c, &b, false); err != nil {
		return err
	}
	if msg := validate(b); msg != "" {
		return probInvalid.Detailf("%s", msg)
	}
	base := s.opts.PublicURL
	if base == "" {
		base = strings.Clone(c.BaseURL())
	}
	id := newID("sp_")
	rec, created, err := s.book.create(record{
		Payment: sandbox.Payment{
			ID: id, URL: base + "/pay/" + id, State: string(payment.StatusOpen), Reference: b.Reference,
			Amount: b.Amount, Currency: b.Currency, ExpiresAt: b.ExpiresAt.UTC(),
		},
		Key: b.IdempotencyKey, Description: b.Description, ReturnURL: b.ReturnURL, CallbackURL: b.CallbackURL,
	})
	if err != nil {
		return problem(err)
	}
	status := fiber.StatusOK
	if created {
		status = fiber.StatusCreated
	}
	rec.age(s.opts.Now())
	return c.Status(status).JSON(rec.Payment)
}

var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

func validate(b sandbox.CreateBody) string {
	switch {
	case b.IdempotencyKey == "" || len(b.IdempotencyKey) > 128:
		return "idempotencyKey must have 1 to 128 characters."
	case b.Amount < 0:
		return "amount must not be negative."
	case !currencyCode.MatchString(b.Currency):
		return "currency must be an ISO 4217 code."
	case !webAddress(b.ReturnURL):
		return "returnUrl must be an http(s) address."
	case !webAddress(b.CallbackURL):
		return "callbackUrl must be an http(s) address."
	case b.ExpiresAt.IsZero():
		return "expiresAt is needed."
	}
	return ""
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

func (s *Server) get(c *fiber.Ctx) error {
	rec, err := s.book.change(strings.Clone(c.Params("id")), s.opts.Now(), func(*record) error { return nil })
	if err != nil {
		return problem(err)
	}
	return c.JSON(rec.Payment)
}

// expire closes an open page; anything else stays as it is, and the answer says
// what that is.
func (s *Server) expire(c *fiber.Ctx) error {
	rec, err := s.book.change(strings.Clone(c.Params("id")), s.opts.Now(), func(r *record) error {
		if r.State == string(payment.StatusOpen) {
			r.State = string(payment.StatusExpired)
		}
		return nil
	})
	if err != nil {
		return problem(err)
	}
	return c.JSON(rec.Payment)
}

func (s *Server) refund(c *fiber.Ctx) error {
	var b sandbox.RefundBody
	if err := basehttp.DecodeJSON(c, &b, false); err != nil {
		return err
	}
	if b.IdempotencyKey == "" || b.Amount <= 0 {
		return probInvalid.Detailf("idempotencyKey and a positive amount are needed.")
	}
	var out sandbox.Refund
	_, err := s.book.change(strings.Clone(c.Params("id")), s.opts.Now(), func(r *record) error {
		if old, ok := r.Refunds[b.IdempotencyKey]; ok {
			if old.Amount != b.Amount {
				return errKeyReused
			}
			out = old
			return nil
		}
		if r.CapturedAmount == 0 {
			return errNothingTaken
		}
		if r.RefundedAmount+b.Amount > r.CapturedAmount {
			return errOverRefund
		}
		out = sandbox.Refund{ID: newID("sr_"), Amount: b.Amount}
		if r.Refunds == nil {
			r.Refunds = map[string]sandbox.Refund{}
		}
		r.Refunds[b.IdempotencyKey] = out
		r.RefundedAmount += b.Amount
		return nil
	})
	if err != nil {
		return problem(err)
	}
	return c.Status(fiber.StatusCreated).JSON(out)
}

// Totals is what the provider has taken and given back, over all payments of a
// currency: the other side of the merchant's books.
type Totals struct{ Captured, Refunded int64 }

// Totals sums every payment; tests and the audit of a rehearsal compare it.
func (s *Server) Totals() map[string]Totals {
	out := map[string]Totals{}
	for _, r := range s.book.all() {
		t := out[r.Currency]
		t.Captured += r.CapturedAmount
		t.Refunded += r.RefundedAmount
		out[r.Currency] = t
	}
	return out
}

// lateAt is when a payment chosen now as paid-late is taken.
func (s *Server) lateAt(r *record, now time.Time, delay *time.Duration) time.Time {
	switch {
	case delay != nil:
		return now.Add(*delay)
	case s.opts.LateAfter > 0:
		return now.Add(s.opts.LateAfter)
	case r.ExpiresAt.After(now):
		return r.ExpiresAt.Add(s.opts.LateBy)
	}
	return now.Add(s.opts.LateBy)
}
