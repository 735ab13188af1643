package booking

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What a caller may have to tell apart. Errors that carry facts for the answer
// are small types below; each of them unwraps to one of these.
var (
	ErrUnknownShowtime = errors.New("booking: no such showtime")
	ErrUnknownHold     = errors.New("booking: no such hold")

	ErrPassInvalid     = errors.New("booking: the pass is not valid")
	ErrPassExpired     = errors.New("booking: the pass has expired")
	ErrPassUsed        = errors.New("booking: the pass has been used")
	ErrBindingRequired = errors.New("booking: the pass is bound to another browser")
	ErrSessionInvalid  = errors.New("booking: no such session")
	ErrSessionEnded    = errors.New("booking: the session has ended")
	ErrRevoked         = errors.New("booking: the operator has revoked this fan's right to buy")
	ErrWrongRoom       = errors.New("booking: the session is for another room")

	ErrSeatsRequired    = errors.New("booking: no seat was asked for")
	ErrTooManySeats     = errors.New("booking: too many seats for one hold")
	ErrDuplicateSeat    = errors.New("booking: a seat is asked for twice")
	ErrUnknownSeat      = errors.New("booking: no such seat")
	ErrSeatsUnavailable = errors.New("booking: seats are taken")
	ErrSoldOut          = errors.New("booking: everything is sold")
	ErrNoneFree         = errors.New("booking: nothing that fits is free at the moment")
	ErrTicketLimit      = errors.New("booking: the limit per customer is reached")
	ErrTooManyTakes     = errors.New("booking: too many holds in a minute")
	ErrKeyRequired      = errors.New("booking: an idempotency key is needed")
	ErrKeyReused        = errors.New("booking: the idempotency key was used for another request")

	// ErrBusy is the answer of a full queue and of a deadline that passed before
	// the seats could be looked at. It says nothing about the seats: never treat
	// it as gone.
	ErrBusy = errors.New("booking: busy, try again")
	// ErrUnavailable means the outcome is not known (the connection was lost with
	// the commit under way). Asking the same again finds the hold if there is one.
	ErrUnavailable = errors.New("booking: the database did not answer")

	ErrHoldExpired = errors.New("booking: the hold has expired")
	ErrHoldNotOpen = errors.New("booking: the hold is not open")
)

// SeatsError names the seats an answer is about. Reason is ErrSeatsUnavailable,
// ErrUnknownSeat or ErrDuplicateSeat.
type SeatsError struct {
	Reason error
	Seats  []string
	// Yours are, beside Seats, those the asking fan holds already, under the hold
	// HoldID (the oldest, if they are of several). Only with ErrSeatsUnavailable.
	Yours  []string
	HoldID string
}

func (e *SeatsError) Error() string {
	if len(e.Yours) > 0 {
		return fmt.Sprintf("%v: %s (held by the same fan: %s)", e.Reason, strings.Join(e.Seats, ", "), strings.Join(e.Yours, ", "))
	}
	return fmt.Sprintf("%v: %s", e.Reason, strings.Join(e.Seats, ", "))
}
func (e *SeatsError) Unwrap() error { return e.Reason }

// TooManySeatsError tells how many one hold may have.
type TooManySeatsError struct{ Max int }

func (e *TooManySeatsError) Error() string {
	return fmt.Sprintf("%v: at most %d", ErrTooManySeats, e.Max)
}
func (e *TooManySeatsError) Unwrap() error { return ErrTooManySeats }

// NoneFreeError says what is left when a choice of seats cannot be made now.
type NoneFreeError struct {
	Section string // where the fan asked; "": anywhere
	Left    int    // free seats there
	Largest int    // most of them beside each other
	Held    int    // held by others, may come back
}

func (e *NoneFreeError) Error() string {
	return fmt.Sprintf("%v: %d left, %d together, %d held", ErrNoneFree, e.Left, e.Largest, e.Held)
}
func (e *NoneFreeError) Unwrap() error { return ErrNoneFree }

// LimitError says where a customer stands against the event's limit. Left is
// what they may still take, never negative.
type LimitError struct{ Limit, Held, Bought, Left int }

func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: %d bought, %d held, limit %d", ErrTicketLimit, e.Bought, e.Held, e.Limit)
}
func (e *LimitError) Unwrap() error { return ErrTicketLimit }

// TooManyTakesError tells when the customer's minute is over.
type TooManyTakesError struct{ RetryAfter time.Duration }

func (e *TooManyTakesError) Error() string {
	return fmt.Sprintf("%v: again in %s", ErrTooManyTakes, e.RetryAfter)
}
func (e *TooManyTakesError) Unwrap() error { return ErrTooManyTakes }
