package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// The limit rows of the room's scopes: a take of this customer that is under
	// way holds one of them, so after this no hold can be made that is not seen.
	sqlLockVisit = `
		SELECT scope_id FROM customer_limit
		 WHERE customer_id = $1 AND scope_id IN (SELECT scope_id FROM showtime WHERE room_id = $2)
		 ORDER BY scope_id, customer_id FOR UPDATE`
	sqlSessionHolds = holdColumns + ` WHERE session_id = $1 AND state = 'OPEN' ORDER BY showtime_id, hold_id`

	// After the session's row, which a take has until its commit: what it held is seen.
	sqlLockSession = `SELECT FROM session WHERE session_id = $1 FOR NO KEY UPDATE`
	sqlMissedHold  = `SELECT EXISTS (SELECT FROM hold WHERE session_id = $1 AND state = 'OPEN' AND expires_at > clock_timestamp())`

	sqlEndSession = `UPDATE session SET ended_at = clock_timestamp(), end_reason = $2
	                  WHERE session_id = $1 AND ended_at IS NULL`
	sqlOtherHold = `SELECT EXISTS (SELECT FROM hold WHERE session_id = $1 AND state IN ('OPEN', 'PAYING')
	                  AND expires_at > clock_timestamp())`
)

// endAttempts bounds how often EndSession begins anew because a take of the same
// fan was quicker.
const endAttempts = 5

// errMissedHold: a take committed between the look at the holds and the session's end.
var errMissedHold = errors.New("booking: a hold was made while the session ended")

// EndSession ends the visit because the fan leaves: their open holds are given
// back at once, those in payment stay (the money may be on its way). Ending an
// ended session is no error. ErrBusy when the fan takes seats faster than that.
func (o *Office) EndSession(ctx context.Context, s Session) error {
	var freed []Hold
	err := errMissedHold
	for i := 0; i < endAttempts && errors.Is(err, errMissedHold); i++ {
		err = InTx(ctx, o.pool, func(tx pgx.Tx) error {
			freed, err = endSession(ctx, tx, s)
			return err
		})
	}
	if errors.Is(err, errMissedHold) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return err
	}
	o.visits.forget(s.ID)
	for _, h := range freed {
		o.maps.apply(h.ShowtimeID, h.Seats, seatFree, 0)
	}
	return nil
}

// endSession locks limit rows, seats and holds, then the session: the order every
// transaction locks in. A hold that came to be meanwhile cannot be given back after
// the session's row is locked; then all is done again.
func endSession(ctx context.Context, tx pgx.Tx, s Session) (freed []Hold, err error) {
	if _, err := tx.Exec(ctx, sqlLockVisit, s.Customer, s.Room); err != nil {
		return nil, fmt.Errorf("booking: end session: %w", err)
	}
	rows, _ := tx.Query(ctx, sqlSessionHolds, s.ID)
	holds, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Hold, error) { return scanHold(row) })
	if err != nil {
		return nil, fmt.Errorf("booking: end session: %w", err)
	}
	for _, h := range holds { // by showtime
		ok, err := releaseTx(ctx, tx, h)
		if err != nil && !errors.Is(err, ErrHoldNotOpen) { // not open: a checkout was quicker
			return nil, err
		}
		if ok {
			freed = append(freed, h)
		}
	}
	if _, err = tx.Exec(ctx, sqlEndSession, s.ID, EndLeft); err != nil {
		return nil, fmt.Errorf("booking: end session: %w", err)
	}
	var missed bool
	if err := tx.QueryRow(ctx, sqlMissedHold, s.ID).Scan(&missed); err != nil {
		return nil, fmt.Errorf("booking: end session: %w", err)
	}
	if missed {
		return nil, errMissedHold
	}
	return freed, nil
}

// EndSessionTx ends a session inside the caller's transaction; call it last, the
// session's row comes after limit rows, seats and holds. With EndConfirmed the
// session goes on while it has another live hold: its fan is not done. It reports
// whether the session ended by this call.
func EndSessionTx(ctx context.Context, tx pgx.Tx, sessionID, reason string) (ended bool, err error) {
	if reason == EndConfirmed {
		// First: a take under way has the row, and what it holds counts.
		if _, err := tx.Exec(ctx, sqlLockSession, sessionID); err != nil {
			return false, fmt.Errorf("booking: end session: %w", err)
		}
		var another bool
		if err := tx.QueryRow(ctx, sqlOtherHold, sessionID).Scan(&another); err != nil {
			return false, fmt.Errorf("booking: end session: %w", err)
		}
		if another {
			return false, nil
		}
	}
	tag, err := tx.Exec(ctx, sqlEndSession, sessionID, reason)
	if err != nil {
		return false, fmt.Errorf("booking: end session: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
