package bookinghttp

import (
	"errors"
	"math/rand/v2"
	"time"

	"usher/booking"
	"usher/internal/basehttp"
)

// problemRow says how one domain error is told to a client.
type problemRow struct {
	is      error
	problem *basehttp.Problem
	// more, when set, adds what this occurrence knows.
	more func(p *basehttp.Problem, err error) *basehttp.Problem
}

func problem(status int, slug, title string) *basehttp.Problem {
	return basehttp.NewProblem(status, slug, title)
}

var (
	errSessionMissing = problem(401, "session-missing", "A session is needed: exchange an admission pass for one")
	errCrossSite      = problem(403, "cross-site-request", "This call came from another site's page")
	errOrigin         = problem(403, "origin-not-allowed", "Pages of this origin may not call this room's API")
	errBusy           = problem(503, "busy", "Very busy at this moment; nothing is said about the seats")
)

// problems is the one table from what the box office says to what a client
// reads. The first row that matches is taken; what no row knows is an opaque 500.
// The rows about money are in paymentProblems.
var problems = []problemRow{
	{is: booking.ErrUnknownRoom, problem: problem(404, "unknown-room", "There is no such room")},
	{is: booking.ErrUnknownShowtime, problem: problem(404, "unknown-showtime", "There is no such showtime")},
	{is: booking.ErrUnknownHold, problem: problem(404, "unknown-hold", "There is no such hold")},

	{is: booking.ErrPassExpired, problem: problem(401, "pass-expired", "The admission pass has expired")},
	{is: booking.ErrPassInvalid, problem: problem(401, "pass-invalid", "The admission pass is not valid")},
	{is: booking.ErrPassUsed, problem: problem(409, "pass-already-used", "The admission pass has been used")},
	{is: booking.ErrBindingRequired, problem: problem(403, "binding-required", "The pass belongs to the browser that joined; its binding is needed")},
	{is: booking.ErrSessionInvalid, problem: problem(401, "session-invalid", "The session token is not valid")},
	{is: booking.ErrSessionEnded, problem: problem(401, "session-ended", "The session has ended")},
	{is: booking.ErrRevoked, problem: problem(403, "revoked", "The organiser has withdrawn this admission")},
	{is: booking.ErrWrongRoom, problem: problem(403, "wrong-room", "The session is for another room's showtimes")},

	{is: booking.ErrSeatsRequired, problem: problem(400, "seats-required", "Name at least one seat, or ask for the best ones")},
	{is: booking.ErrTooManySeats, problem: problem(400, "too-many-seats", "More seats than one hold may have"), more: tooManySeats},
	{is: booking.ErrDuplicateSeat, problem: problem(400, "duplicate-seat", "A seat is named twice"), more: namedSeats},
	{is: booking.ErrUnknownSeat, problem: problem(400, "unknown-seat", "There is no such seat in this showtime"), more: namedSeats},
	{is: booking.ErrKeyRequired, problem: basehttp.ErrIdempotencyKey},
	{is: booking.ErrKeyReused, problem: problem(422, "idempotency-key-reused", "The Idempotency-Key was used for another request")},

	{is: booking.ErrSeatsUnavailable, problem: problem(409, "seats-unavailable", "Some of the seats are taken"), more: lostSeats},
	{is: booking.ErrSoldOut, problem: problem(409, "sold-out", "Everything is sold")},
	{is: booking.ErrNoneFree, problem: problem(409, "none-free-now", "Nothing that fits is free at the moment"), more: noneFree},
	{is: booking.ErrTicketLimit, problem: problem(409, "ticket-limit", "The limit of tickets per customer is reached"), more: ticketLimit},
	{is: booking.ErrTooManyTakes, problem: problem(429, "too-many-requests", "Too many holds within a minute"), more: tooManyTakes},
	{is: booking.ErrHoldExpired, problem: problem(409, "hold-expired", "The hold has expired")},
	{is: booking.ErrHoldNotOpen, problem: problem(409, "hold-not-open", "The hold is being paid or is already a booking")},

	{is: booking.ErrBusy, problem: errBusy, more: tryAgainSoon},
	{is: booking.ErrUnavailable, problem: basehttp.ErrUnavailable, more: tryAgainSoon},
}

// fail translates err for the client. A problem stays what it is.
func (s *Server) fail(err error) error {
	var p *basehttp.Problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	for _, table := range [][]problemRow{problems, paymentProblems} {
		for _, row := range table {
			if !errors.Is(err, row.is) {
				continue
			}
			p = row.problem.Because(err)
			if row.more != nil {
				p = row.more(p, err)
			}
			return p
		}
	}
	if booking.Unreachable(err) {
		return tryAgainSoon(basehttp.ErrUnavailable.Because(err), err)
	}
	return err
}

// tryAgainSoon spreads the returns: a thousand clients told the same second come
// back in the same second.
func tryAgainSoon(p *basehttp.Problem, _ error) *basehttp.Problem {
	return p.After(time.Duration(1+rand.IntN(3)) * time.Second)
}

// lostSeats tells apart what others have and what the fan holds already: the
// latter is not lost, and its hold is the way to it.
func lostSeats(p *basehttp.Problem, err error) *basehttp.Problem {
	var e *booking.SeatsError
	if !errors.As(err, &e) || len(e.Yours) == 0 {
		return namedSeats(p, err)
	}
	p = namedSeats(p, err).With("yours", e.Yours).With("holdId", e.HoldID)
	if len(e.Seats) == 0 {
		c := *p
		c.Title = "You already hold some of these seats"
		return &c
	}
	return p
}

func namedSeats(p *basehttp.Problem, err error) *basehttp.Problem {
	var e *booking.SeatsError
	if !errors.As(err, &e) {
		return p
	}
	seats := e.Seats
	if seats == nil {
		seats = []string{}
	}
	if len(seats) > 100 { // a stranger's list is not echoed whole
		seats = seats[:100]
	}
	return p.With("seats", seats)
}

func tooManySeats(p *basehttp.Problem, err error) *basehttp.Problem {
	var e *booking.TooManySeatsError
	if !errors.As(err, &e) {
		return p
	}
	return p.Detailf("At most %d seats a hold.", e.Max).With("max", e.Max)
}

func noneFree(p *basehttp.Problem, err error) *basehttp.Problem {
	var e *booking.NoneFreeError
	if !errors.As(err, &e) {
		return p
	}
	if e.Section != "" {
		p = p.With("section", e.Section)
	}
	return p.Detailf("%d are left there, at most %d side by side; %d are held by others and may come back.", e.Left, e.Largest, e.Held).
		With("left", e.Left).With("largestBlock", e.Largest).With("held", e.Held)
}

func ticketLimit(p *basehttp.Problem, err error) *basehttp.Problem {
	var e *booking.LimitError
	if !errors.As(err, &e) {
		return p
	}
	return p.Detailf("%d bought and %d held of %d; %d left.", e.Bought, e.Held, e.Limit, e.Left).
		With("limit", e.Limit).With("held", e.Held).With("bought", e.Bought).With("left", e.Left)
}

func tooManyTakes(p *basehttp.Problem, err error) *basehttp.Problem {
	var e *booking.TooManyTakesError
	if !errors.As(err, &e) {
		return p
	}
	return p.After(max(e.RetryAfter, time.Second))
}
