package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// holdFields are what scanHold reads.
const holdFields = `hold_id::text, showtime_id, session_id::text, customer_id, seats, amount, currency,
	CASE WHEN state IN ('OPEN', 'PAYING') AND expires_at <= clock_timestamp() THEN 'EXPIRED' ELSE state END, expires_at`

const holdColumns = `SELECT ` + holdFields + ` FROM hold`

const (
	sqlHold = holdColumns + ` WHERE hold_id = $1 AND customer_id = $2`

	// Order everywhere: limit rows, seats, hold rows.
	sqlLockHoldSeats = `SELECT seat_code FROM show_seat WHERE showtime_id = $1 AND seat_code = ANY($2)
	                     ORDER BY showtime_id, seat_code FOR UPDATE`
	sqlLockHold = `SELECT CASE WHEN state IN ('OPEN', 'PAYING') AND expires_at <= clock_timestamp() THEN 'EXPIRED' ELSE state END
	                 FROM hold WHERE showtime_id = $1 AND hold_id = $2 FOR UPDATE`
	// A statement of its own after the lock: its snapshot sees the payment that a
	// checkout made while this transaction waited.
	sqlCloseHold = `
		UPDATE hold h SET state = 'RELEASED'
		 WHERE h.showtime_id = $1 AND h.hold_id = $2
		   AND (h.state = 'OPEN' OR h.state = 'PAYING' AND NOT EXISTS (
		        SELECT FROM booking b JOIN payment p ON p.showtime_id = b.showtime_id AND p.booking_id = b.booking_id
		         WHERE b.showtime_id = h.showtime_id AND b.hold_id = h.hold_id AND p.state IN ('PENDING', 'CAPTURED')))`
	sqlFreeSeats = `
		UPDATE show_seat SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL
		 WHERE showtime_id = $1 AND seat_code = ANY($2) AND hold_id = $3 AND status = 'HELD'`
)

func scanHold(row pgx.Row, more ...any) (h Hold, err error) {
	err = row.Scan(append([]any{&h.ID, &h.ShowtimeID, &h.SessionID, &h.Customer, &h.Seats, &h.Amount, &h.Currency, &h.State,
		&h.ExpiresAt}, more...)...)
	h.ExpiresAt = h.ExpiresAt.UTC()
	return h, err
}

// GetHold reads a hold of the session's customer, whatever its state;
// ErrUnknownHold for one that is not there and for other people's.
func (o *Office) GetHold(ctx context.Context, s Session, id string) (Hold, error) {
	key, err := uuid.Parse(id)
	if err != nil {
		return Hold{}, ErrUnknownHold
	}
	h, err := scanHold(o.pool.QueryRow(ctx, sqlHold, key.String(), s.Customer))
	if errors.Is(err, pgx.ErrNoRows) {
		return Hold{}, ErrUnknownHold
	}
	if err != nil {
		return Hold{}, fmt.Errorf("booking: read hold: %w", err)
	}
	return h, nil
}

// ReleaseHold gives the seats back at once. Releasing what has been released or
// has expired is no error. ErrHoldNotOpen while a payment may still arrive and
// for a hold that became a booking; payment.Desk.ReleaseHold goes on from there.
// ErrUnknownHold as for GetHold.
func (o *Office) ReleaseHold(ctx context.Context, s Session, id string) error {
	h, err := o.GetHold(ctx, s, id)
	if err != nil {
		return err
	}
	if h.State == HoldReleased || h.State == HoldExpired {
		return nil
	}
	var freed bool
	err = InTx(ctx, o.pool, func(tx pgx.Tx) error {
		freed, err = releaseTx(ctx, tx, h)
		return err
	})
	if err != nil {
		return err
	}
	if freed {
		o.maps.apply(h.ShowtimeID, h.Seats, seatFree, 0)
	}
	return nil
}

// releaseTx closes one hold and frees those of its seats that are still its own:
// after an expiry they may be another fan's.
func releaseTx(ctx context.Context, tx pgx.Tx, h Hold) (freed bool, err error) {
	return closeHoldTx(ctx, tx, h, sqlCloseHold)
}

// closeHoldTx is releaseTx with a condition of its own on the hold.
func closeHoldTx(ctx context.Context, tx pgx.Tx, h Hold, sqlClose string) (freed bool, err error) {
	if _, err := tx.Exec(ctx, sqlLockHoldSeats, h.ShowtimeID, h.Seats); err != nil {
		return false, fmt.Errorf("booking: release: lock seats: %w", err)
	}
	var state string
	if err := tx.QueryRow(ctx, sqlLockHold, h.ShowtimeID, h.ID).Scan(&state); err != nil {
		return false, fmt.Errorf("booking: release: lock hold: %w", err)
	}
	if state == HoldReleased || state == HoldExpired {
		return false, nil
	}
	tag, err := tx.Exec(ctx, sqlClose, h.ShowtimeID, h.ID)
	if err != nil {
		return false, fmt.Errorf("booking: release: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return false, ErrHoldNotOpen
	}
	freedSeats, err := tx.Exec(ctx, sqlFreeSeats, h.ShowtimeID, h.Seats, h.ID)
	if err != nil {
		return false, fmt.Errorf("booking: release: free seats: %w", err)
	}
	return freedSeats.RowsAffected() == int64(len(h.Seats)), nil
}
