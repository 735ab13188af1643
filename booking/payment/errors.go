package payment

import (
	"errors"
	"fmt"
	"strings"
)

// What a caller may have to tell apart. The errors of package booking come
// through as well: ErrUnknownHold, ErrHoldExpired, ErrHoldNotOpen, ErrKeyReused.
var (
	ErrUnknownBooking = errors.New("payment: no such booking")
	ErrUnknownTicket  = errors.New("payment: no such ticket")
	// ErrInProgress: the same key is being worked on by a twin of this request.
	ErrInProgress = errors.New("payment: a request with this key is being worked on")
	// ErrProviderDown: the provider did not answer. Nothing is lost: the same
	// checkout asked again goes on with the same attempt.
	ErrProviderDown = errors.New("payment: the provider does not answer")
	// ErrNotRefundable: the booking has nothing to give back (never paid, failed,
	// or refunded already).
	ErrNotRefundable = errors.New("payment: the booking cannot be refunded")
)

// HoldLostError is ErrHoldExpired with the seats that are no longer the fan's.
type HoldLostError struct {
	Reason error
	Seats  []string
}

func (e *HoldLostError) Error() string {
	return fmt.Sprintf("%v: lost %s", e.Reason, strings.Join(e.Seats, ", "))
}
func (e *HoldLostError) Unwrap() error { return e.Reason }
