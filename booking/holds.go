package booking

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The states of a hold.
const (
	HoldOpen      = "OPEN"
	HoldPaying    = "PAYING"
	HoldConfirmed = "CONFIRMED"
	HoldReleased  = "RELEASED"
	HoldExpired   = "EXPIRED"
)

// Hold is a lease on seats of one showtime until ExpiresAt, by the database's clock.
type Hold struct {
	ID         string
	ShowtimeID string
	SessionID  string
	Customer   string
	Seats      []string // sorted
	Amount     int64    // minor units
	Currency   string
	State      string // a Hold… constant; reads EXPIRED from the very moment, recorded or not
	ExpiresAt  time.Time
}

// HoldRequest asks for seats by code or, with Best, for a choice of them.
type HoldRequest struct {
	ShowtimeID     string
	Seats          []string
	Best           *Best
	IdempotencyKey string // needed with Best, optional otherwise
}

// Best asks the office to choose Count seats beside each other.
type Best struct {
	Count   int
	Section string // "": anywhere
}

// Hold takes seats for a session's customer. created is false when this customer
// already held exactly these seats: the answer is that hold with its clock. A key
// that has made a hold before gives that hold again, whatever became of it, and
// created as then.
//
// Errors: ErrRevoked, ErrSessionEnded, ErrUnknownShowtime, ErrWrongRoom; ErrSeatsRequired,
// *TooManySeatsError, *SeatsError, ErrKeyRequired, ErrKeyReused; *SeatsError with
// ErrSeatsUnavailable, ErrSoldOut, *NoneFreeError, *LimitError,
// *TooManyTakesError; ErrBusy, ErrUnavailable. Only the database says that seats
// are gone.
func (o *Office) Hold(ctx context.Context, s Session, r HoldRequest) (h Hold, created bool, err error) {
	deadline := time.Now().Add(o.opts.HoldDeadline)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if s.Revoked || o.refuses(s) {
		return Hold{}, false, ErrRevoked
	}
	if s.Ended {
		return Hold{}, false, ErrSessionEnded
	}
	st, layout, err := o.catalog.get(ctx, r.ShowtimeID)
	if err != nil {
		return Hold{}, false, err
	}
	if st.Room != s.Room {
		return Hold{}, false, ErrWrongRoom
	}
	if r.Best != nil {
		h, created, err = o.holdBest(ctx, s, st, layout, r, deadline)
	} else {
		h, created, err = o.holdSeats(ctx, s, st, layout, r, deadline)
	}
	o.metrics.holds.WithLabelValues(outcomeOf(created, err)).Inc()
	return h, created, err
}

// outcomeOf is a closed set of words for the metric.
func outcomeOf(created bool, err error) string {
	switch {
	case err == nil && created:
		return "taken"
	case err == nil:
		return "same"
	case errors.Is(err, ErrSeatsUnavailable):
		return "unavailable"
	case errors.Is(err, ErrSoldOut):
		return "sold_out"
	case errors.Is(err, ErrNoneFree):
		return "none_free"
	case errors.Is(err, ErrTicketLimit):
		return "limit"
	case errors.Is(err, ErrTooManyTakes):
		return "rate"
	case errors.Is(err, ErrRevoked):
		return "revoked"
	case errors.Is(err, ErrBusy), errors.Is(err, ErrUnavailable):
		return "busy"
	case errors.Is(err, ErrSeatsRequired), errors.Is(err, ErrTooManySeats), errors.Is(err, ErrDuplicateSeat),
		errors.Is(err, ErrUnknownSeat), errors.Is(err, ErrKeyRequired), errors.Is(err, ErrKeyReused):
		return "refused"
	}
	return "error"
}

func (o *Office) holdSeats(ctx context.Context, s Session, st *Showtime, l *Layout, r HoldRequest, deadline time.Time) (Hold, bool, error) {
	if err := checkSeats(r.Seats, st, l); err != nil {
		return Hold{}, false, err
	}
	seats := slices.Clone(r.Seats)
	slices.Sort(seats)
	take, err := newTake(s, st, l, seats, r.IdempotencyKey, "seats:"+strings.Join(seats, ","))
	if err != nil {
		return Hold{}, false, err
	}
	res, err := o.laneOf(st.ScopeID).do(ctx, take, deadline)
	if err != nil {
		return Hold{}, false, err
	}
	if res.outcome == "gone" {
		o.catalog.forget(st.ID) // it has another layout by now
	}
	return res.answer(st.MaxPerCustomer)
}

// checkSeats refuses what no database needs to be asked about.
func checkSeats(seats []string, st *Showtime, l *Layout) error {
	if len(seats) == 0 {
		return ErrSeatsRequired
	}
	if len(seats) > st.MaxPerHold {
		return &TooManySeatsError{Max: st.MaxPerHold}
	}
	var unknown, twice []string
	seen := make(map[string]struct{}, len(seats))
	for _, s := range seats {
		if _, ok := seen[s]; ok {
			twice = append(twice, s)
		}
		seen[s] = struct{}{}
		if _, ok := l.index[s]; !ok {
			unknown = append(unknown, s)
		}
	}
	if len(unknown) > 0 {
		return &SeatsError{Reason: ErrUnknownSeat, Seats: unknown}
	}
	if len(twice) > 0 {
		return &SeatsError{Reason: ErrDuplicateSeat, Seats: twice}
	}
	return nil
}

func newTake(s Session, st *Showtime, l *Layout, seats []string, key, body string) (*takeRequest, error) {
	var amount int64
	for _, code := range seats {
		class := l.Seats[l.index[code]].PriceClass
		price, ok := st.price(class)
		if !ok {
			return nil, fmt.Errorf("booking: showtime %s has no price for class %q", st.ID, class)
		}
		amount += price
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("booking: new hold: %w", err)
	}
	return &takeRequest{
		holdID: id.String(), showtimeID: st.ID, scopeID: st.ScopeID, customer: s.Customer, sessionID: s.ID,
		seats: seats, amount: amount, currency: st.Currency, holdTime: st.HoldTime, maxCustomer: st.MaxPerCustomer,
		key: key, hash: requestHash(body),
	}, nil
}

// requestHash tells two requests under one key apart.
func requestHash(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:16])
}

// answer is the domain's word for an outcome of take.sql.
func (r takeResult) answer(limit int) (Hold, bool, error) {
	switch r.outcome {
	case "take", "replay":
		return r.hold, true, nil
	case "same":
		return r.hold, false, nil
	case "taken":
		return Hold{}, false, &SeatsError{Reason: ErrSeatsUnavailable, Seats: r.lost, Yours: r.yours, HoldID: r.yourHold}
	case "gone":
		return Hold{}, false, &SeatsError{Reason: ErrUnknownSeat, Seats: r.lost}
	case "limit":
		return Hold{}, false, &LimitError{Limit: limit, Held: r.held, Bought: r.sold, Left: max(0, limit-r.held-r.sold)}
	case "rate":
		return Hold{}, false, &TooManyTakesError{RetryAfter: r.retryAfter}
	case "revoked":
		return Hold{}, false, ErrRevoked
	case "session":
		return Hold{}, false, ErrSessionEnded
	case "reused":
		return Hold{}, false, ErrKeyReused
	}
	return Hold{}, false, fmt.Errorf("booking: take answered %q", r.outcome)
}
