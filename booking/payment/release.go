package payment

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
)

const (
	sqlUnpaidAttempts = `
		SELECT p.showtime_id, p.payment_id, p.booking_id, p.amount, p.currency, p.expires_at,
		       COALESCE(p.provider_payment_id, ''), e.title
		  FROM hold h
		  JOIN booking b ON b.showtime_id = h.showtime_id AND b.hold_id = h.hold_id
		  JOIN payment p ON p.showtime_id = b.showtime_id AND p.booking_id = b.booking_id
		  JOIN showtime st ON st.showtime_id = h.showtime_id JOIN event e ON e.event_id = st.event_id
		 WHERE h.hold_id = $1 AND h.customer_id = $2 AND b.state = 'PENDING' AND p.state = 'PENDING' AND p.provider = $3
		 ORDER BY p.attempt`
	sqlBookingOfHold = `
		SELECT b.showtime_id, b.booking_id FROM hold h
		  JOIN booking b ON b.showtime_id = h.showtime_id AND b.hold_id = h.hold_id
		 WHERE h.hold_id = $1 AND h.customer_id = $2`
	sqlStillPaying = `
		SELECT EXISTS (SELECT FROM payment WHERE showtime_id = $1 AND booking_id = $2 AND state IN ('PENDING', 'CAPTURED'))`
)

// ReleaseHold gives a hold back whose payment page is open: the page is closed at
// the provider first, so that nobody can pay for seats that are gone, and with its
// word that nothing was paid the seats are free and the booking has failed, both
// at once. Releasing a hold that is over already is no error.
//
// booking.ErrHoldNotOpen, with everything as it was, when the fan has paid or is
// paying, when the provider cannot say (it is silent, or denies the payment), and
// when another checkout was quicker. booking.ErrUnknownHold for a hold that nobody
// has ever gone to pay for, and for other people's.
func (d *Desk) ReleaseHold(ctx context.Context, s booking.Session, holdID string) error {
	id, err := uuid.Parse(holdID)
	if err != nil {
		return booking.ErrUnknownHold
	}
	if err := d.closePages(ctx, s, id); err != nil {
		return err
	}
	var freed settlement
	err = booking.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		freed, err = releaseTx(ctx, tx, s, id)
		return err
	})
	if err != nil {
		return err
	}
	d.announce(freed)
	return nil
}

// closePages ends every page of the hold that may still be open, outside any
// transaction, and settles what the provider says of each. An attempt the
// provider has not answered yet is found there by its key, as the reconciler
// does: should its checkout still be under way, that is answered with a closed page.
func (d *Desk) closePages(ctx context.Context, s booking.Session, holdID uuid.UUID) error {
	rows, err := d.pool.Query(ctx, sqlUnpaidAttempts, holdID, s.Customer, d.provider.Name())
	if err != nil {
		return fmt.Errorf("payment: open pages: %w", err)
	}
	open, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (q doubt, err error) {
		err = r.Scan(&q.showtimeID, &q.paymentID, &q.bookingID, &q.amount, &q.currency, &q.expiresAt, &q.providerID, &q.title)
		q.over = true // by the fan's wish
		return q, err
	})
	if err != nil {
		return fmt.Errorf("payment: open pages: %w", err)
	}
	for _, q := range open {
		o, err := d.askAndSettle(ctx, "release", q)
		if errors.Is(err, ErrProviderDown) {
			d.log.Warn("a hold is not released: the provider cannot close its page", "payment", q.paymentID, "err", err)
			return fmt.Errorf("%w: %w", booking.ErrHoldNotOpen, err)
		}
		if err != nil {
			return err
		}
		switch o.Status {
		case StatusDeclined, StatusExpired, StatusRefused:
		case StatusPaid, StatusProcessing, StatusOpen:
			return booking.ErrHoldNotOpen
		}
	}
	return nil
}

// releaseTx frees the seats and fails the booking, unless somebody is paying
// after all. Order of locks: booking, seats, hold; the booking's keeps the next
// checkout out.
func releaseTx(ctx context.Context, tx pgx.Tx, s booking.Session, holdID uuid.UUID) (settlement, error) {
	var showtimeID string
	var bookingID uuid.UUID
	err := tx.QueryRow(ctx, sqlBookingOfHold, holdID, s.Customer).Scan(&showtimeID, &bookingID)
	if errors.Is(err, pgx.ErrNoRows) {
		return settlement{}, booking.ErrUnknownHold
	}
	if err != nil {
		return settlement{}, fmt.Errorf("payment: booking: %w", err)
	}
	b, err := lockBooking(ctx, tx, showtimeID, bookingID)
	if err != nil {
		return settlement{}, err
	}
	h, err := lockHold(ctx, tx, b.showtimeID, b.holdID, b.seats)
	if err != nil {
		return settlement{}, err
	}
	var paying bool
	if err := tx.QueryRow(ctx, sqlStillPaying, b.showtimeID, b.id).Scan(&paying); err != nil {
		return settlement{}, fmt.Errorf("payment: open pages: %w", err)
	}
	if paying || h.state == booking.HoldConfirmed {
		return settlement{}, booking.ErrHoldNotOpen
	}
	if err := letGo(ctx, tx, b.showtimeID, b.holdID, h); err != nil {
		return settlement{}, err
	}
	return settlement{showtimeID: b.showtimeID, free: h.mine}, failIfHoldIsOver(ctx, tx, b)
}
