package payment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
)

const (
	// The order of these locks is everybody's: seats by key, then the hold.
	sqlLockSeats = `
		SELECT seat_code FROM show_seat
		 WHERE showtime_id = $1 AND seat_code = ANY($2)
		 ORDER BY showtime_id, seat_code FOR UPDATE`
	sqlLockHold = `
		SELECT 1 FROM hold WHERE showtime_id = $1 AND hold_id = $2 FOR UPDATE`
	// Asked only after both waits are over: a clock read before a wait would call
	// an expired hold alive.
	sqlJudgeHold = `
		WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS t)
		SELECT clock.t, h.state, h.extended, h.expires_at, h.seats, h.seat_count,
		       COALESCE((SELECT array_agg(s.seat_code ORDER BY s.seat_code) FROM show_seat s
		                  WHERE s.showtime_id = h.showtime_id AND s.seat_code = ANY(h.seats)
		                    AND s.status = 'HELD' AND s.hold_id = h.hold_id AND s.hold_expires_at > clock.t), '{}'),
		       EXISTS (SELECT FROM show_seat s
		                WHERE s.showtime_id = h.showtime_id AND s.seat_code = ANY(h.seats)
		                  AND s.status <> 'AVAILABLE' AND s.hold_id <> h.hold_id),
		       COALESCE((SELECT ` + booking.SQLRevokedVisit + ` FROM session v WHERE v.session_id = h.session_id), false)
		  FROM hold h CROSS JOIN clock
		 WHERE h.showtime_id = $1 AND h.hold_id = $2`
	sqlExtendSeats = `
		UPDATE show_seat SET hold_expires_at = $4
		 WHERE showtime_id = $1 AND seat_code = ANY($2) AND hold_id = $3 AND status = 'HELD'`
	sqlHoldPaying = `
		UPDATE hold SET state = 'PAYING', extended = true, expires_at = $3
		 WHERE showtime_id = $1 AND hold_id = $2`
	sqlReleaseSeats = `
		UPDATE show_seat
		   SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL
		 WHERE showtime_id = $1 AND seat_code = ANY($2) AND hold_id = $3 AND status = 'HELD'`
	sqlHoldEnded = `
		UPDATE hold SET state = $3 WHERE showtime_id = $1 AND hold_id = $2 AND state IN ('OPEN', 'PAYING')`
)

// heldState is a hold and its seats at one instant of the database's clock, all
// of them locked: it stays true until the transaction ends.
type heldState struct {
	now       time.Time
	state     string
	extended  bool
	expiresAt time.Time
	seats     []string
	count     int
	mine      []string // seats still this hold's and alive
	resold    bool     // some seat is another's now
	revoked   bool     // the operator has revoked the fan it is for
}

// lockHold locks the seats in key order, then the hold, then looks.
func lockHold(ctx context.Context, tx pgx.Tx, showtimeID string, holdID uuid.UUID, seats []string) (heldState, error) {
	var h heldState
	if _, err := tx.Exec(ctx, sqlLockSeats, showtimeID, seats); err != nil {
		return h, fmt.Errorf("payment: lock seats: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlLockHold, showtimeID, holdID); err != nil {
		return h, fmt.Errorf("payment: lock hold: %w", err)
	}
	err := tx.QueryRow(ctx, sqlJudgeHold, showtimeID, holdID).
		Scan(&h.now, &h.state, &h.extended, &h.expiresAt, &h.seats, &h.count, &h.mine, &h.resold, &h.revoked)
	if err != nil {
		return h, fmt.Errorf("payment: hold: %w", err)
	}
	return h, nil
}

// whole tells whether the hold lives with every one of its seats.
func (h heldState) whole() bool {
	return (h.state == booking.HoldOpen || h.state == booking.HoldPaying) && h.expiresAt.After(h.now) && len(h.mine) == h.count
}

// payable is nil for a hold a fan may pay for.
func (h heldState) payable() error {
	switch {
	case h.revoked:
		return booking.ErrRevoked
	case h.whole():
		return nil
	case h.state == booking.HoldConfirmed || h.state == booking.HoldReleased:
		return booking.ErrHoldNotOpen
	}
	lost := slices.DeleteFunc(slices.Clone(h.seats), func(s string) bool { return slices.Contains(h.mine, s) })
	return &HoldLostError{Reason: booking.ErrHoldExpired, Seats: lost}
}

// The reasons a booking fails for, as its events and pages tell them.
const (
	ReasonHoldExpired    = "hold-expired"    // paid after the hold's time; the seats are free again
	ReasonSeatsResold    = "seats-resold"    // the same, and somebody else has them
	ReasonHoldReleased   = "hold-released"   // the fan gave the seats back
	ReasonAmountMismatch = "amount-mismatch" // the provider took another amount or currency
	ReasonSecondPayment  = "second-payment"  // the booking had been paid for already
	ReasonRevoked        = "revoked"         // the operator has revoked the fan's right to buy
	ReasonBookingOver    = "booking-over"    // the money came after the booking had failed
)

// lossReason says why a hold that is not whole cannot be sold.
func (h heldState) lossReason() string {
	switch {
	case h.revoked:
		return ReasonRevoked
	case h.state == booking.HoldReleased:
		return ReasonHoldReleased
	case h.resold:
		return ReasonSeatsResold
	}
	return ReasonHoldExpired
}

// startPaying marks the hold as being paid and, the first time, extends it to
// max(old, now + HoldExtension). It returns when the hold ends.
func (d *Desk) startPaying(ctx context.Context, tx pgx.Tx, showtimeID string, holdID uuid.UUID, h heldState) (time.Time, error) {
	until := h.expiresAt
	if h.extended {
		return until, nil
	}
	if ext := h.now.Add(d.opts.HoldExtension); ext.After(until) {
		until = ext
		if _, err := tx.Exec(ctx, sqlExtendSeats, showtimeID, h.seats, holdID, until); err != nil {
			return until, fmt.Errorf("payment: extend seats: %w", err)
		}
	}
	if _, err := tx.Exec(ctx, sqlHoldPaying, showtimeID, holdID, until); err != nil {
		return until, fmt.Errorf("payment: extend hold: %w", err)
	}
	return until, nil
}

// letGo frees what is left of a hold whose booking has failed.
func letGo(ctx context.Context, tx pgx.Tx, showtimeID string, holdID uuid.UUID, h heldState) error {
	if _, err := tx.Exec(ctx, sqlReleaseSeats, showtimeID, h.seats, holdID); err != nil {
		return fmt.Errorf("payment: free seats: %w", err)
	}
	state := booking.HoldExpired
	if h.expiresAt.After(h.now) {
		state = booking.HoldReleased
	}
	if _, err := tx.Exec(ctx, sqlHoldEnded, showtimeID, holdID, state); err != nil {
		return fmt.Errorf("payment: end hold: %w", err)
	}
	return nil
}
