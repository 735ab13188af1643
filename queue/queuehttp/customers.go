package queuehttp

import (
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/queue"
	"usher/queue/customer"
	"usher/queue/limits"
)

// Customers is whom a room knows by name.
type Customers struct {
	Trust    *customer.Trust // nil: no integrator names anybody
	Required bool            // nobody else gets a new place
}

var (
	errCustomerInvalid  = basehttp.NewProblem(401, "customer-token-invalid", "The customer token is not valid for this room")
	errCustomerRequired = basehttp.NewProblem(401, "customer-token-required", "This room takes only customers whom the organiser's site names")
)

// customerHeader carries a customer token where the body cannot.
const customerHeader = "Usher-Customer"

// A customer token that another site's form brought waits in a cookie for the join that
// follows from our own page: such a form comes without our cookies (SameSite), so who
// joins is only known with the next request.
const (
	customerCookie     = "usher_customer_" // + room
	customerCookieLife = 10 * time.Minute
)

// named is what a join says about who its fan is.
type named struct {
	who  customer.Customer // the zero value: nobody was named
	kept bool              // by the cookie
}

func (s *Server) customers(room string) Customers {
	if s.opts.Customers == nil {
		return Customers{}
	}
	return s.opts.Customers(room)
}

// whoSays reads the customer token of a join: in the body, in the header, or kept in
// the cookie. A kept one that is not good any more is none: its browser cannot help it.
func (s *Server) whoSays(c *fiber.Ctx, room, inBody string) (named, error) {
	token := inBody
	if token == "" {
		token = strings.Clone(c.Get(customerHeader))
	}
	if token != "" {
		who, err := s.verifyCustomer(c, room, token)
		return named{who: who}, err
	}
	for _, kept := range cookies(c, customerCookie+room) {
		if t := s.customers(room).Trust; t != nil {
			if who, err := t.Verify(room, kept, s.opts.Now()); err == nil {
				return named{who: who, kept: true}, nil
			}
		}
	}
	return named{}, nil
}

// verifyCustomer is customer-token-invalid for any token that names nobody here.
func (s *Server) verifyCustomer(c *fiber.Ctx, room, token string) (customer.Customer, error) {
	if _, err := s.line.Room(room); err != nil {
		return customer.Customer{}, problem(err)
	}
	t := s.customers(room).Trust
	if t == nil {
		return customer.Customer{}, errCustomerInvalid.Detailf("This room takes no customer tokens. Nothing was changed.")
	}
	who, err := t.Verify(room, token, s.opts.Now())
	switch {
	case errors.Is(err, customer.ErrNoKeys):
		return who, basehttp.ErrUnavailable.Detailf("The keys of the customer tokens cannot be read.").After(2 * time.Second).Because(err)
	case err != nil:
		if refused := s.tooManyFailures(c, "customer tokens"); refused != nil {
			return who, refused
		}
		return who, errCustomerInvalid.Detailf("It must be signed by this room's issuer, name the room as its audience, and not have expired. Nothing was changed.")
	}
	return who, nil
}

// knownFan is a customer at this browser: one place for the customer, and passes bound
// to the browser.
func (s *Server) knownFan(c *fiber.Ctx, room string, n named) (f queue.Fan, fresh bool, err error) {
	key, err := basehttp.IdempotencyKey(c, false)
	if err != nil {
		return queue.Fan{}, false, err
	}
	token, _ := s.placeToken(c, room)
	f = queue.Fan{Known: n.who, Former: token}
	switch fans := s.fans(c); {
	case len(fans) > 0:
		f.ID, f.Bound = fans[0], true
	case key != "":
		f.ID = "key:" + key
	default:
		// Who kept the token in a cookie keeps this one, too.
		f.ID, f.Bound, fresh = newFan(), n.kept, true
	}
	return f, fresh, nil
}

// joins is who joins, by name or not. A room that is for known customers alone takes
// others only to a place they have by such a name.
func (s *Server) joins(c *fiber.Ctx, room string, body joinBody) (f queue.Fan, fresh bool, err error) {
	n, err := s.whoSays(c, room, body.CustomerToken)
	if err != nil {
		return queue.Fan{}, false, err
	}
	if n.who != (customer.Customer{}) {
		return s.knownFan(c, room, n)
	}
	f, fresh, err = s.whoJoins(c, room)
	if err == nil && s.customers(room).Required && (f.ID != "" || !s.line.IsKnown(room, f.Place)) {
		return f, false, errCustomerRequired.Detailf("Come from the organiser's site, signed in; a program sends customerToken. Nothing was changed.")
	}
	return f, fresh, err
}

// forgetCustomer drops a kept customer token once it has served.
func (s *Server) forgetCustomer(c *fiber.Ctx, room string) {
	if len(cookies(c, customerCookie+room)) > 0 {
		s.setCookie(c, customerCookie+room, "", -time.Hour)
	}
}

// tooManyFailures is the problem of an address that shows too many broken tokens; nil
// while it may go on. It costs no call of the store.
func (s *Server) tooManyFailures(c *fiber.Ctx, what string) error {
	if t := s.gate.tolls(); t.Failures.PerMinute > 0 {
		address, _ := limits.Blocks(s.address(c))
		if wait := s.gate.failures.Allow(address, t.Failures, time.Now()); wait > 0 {
			return errTooMany.Detailf("Too many broken %s from this address.", what).After(wait)
		}
	}
	return nil
}
