package payment

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
	"usher/booking/outbox"
)

const (
	sqlBookSeats = `
		UPDATE show_seat SET status = 'BOOKED', booking_id = $4, hold_expires_at = NULL
		 WHERE showtime_id = $1 AND seat_code = ANY($2) AND hold_id = $3 AND status = 'HELD'`
	sqlHoldConfirmed = `
		UPDATE hold SET state = 'CONFIRMED'
		 WHERE showtime_id = $1 AND hold_id = $2 AND state IN ('OPEN', 'PAYING') RETURNING session_id`
	sqlBookingConfirmed = `
		UPDATE booking SET state = 'CONFIRMED', confirmed_at = $3
		 WHERE showtime_id = $1 AND booking_id = $2 AND state = 'PENDING'`
	sqlBookingFailed = `
		UPDATE booking SET state = 'FAILED', reason = $3
		 WHERE showtime_id = $1 AND booking_id = $2 AND state = 'PENDING'`
	sqlHoldIsOver = `
		SELECT NOT (state IN ('OPEN', 'PAYING') AND expires_at > clock_timestamp()), state = 'RELEASED',
		       EXISTS (SELECT FROM payment p WHERE p.showtime_id = $1 AND p.booking_id = $3 AND p.state = 'PENDING')
		  FROM hold WHERE showtime_id = $1 AND hold_id = $2`
)

// confirm sells the seats of a hold that is whole: every row of it, or an error
// that undoes all. The caller holds every lock; the decision was made by the
// database's clock after the last wait.
func (d *Desk) confirm(ctx context.Context, tx pgx.Tx, p paymentRow, b bookingRow, h heldState) error {
	tag, err := tx.Exec(ctx, sqlBookSeats, b.showtimeID, b.seats, b.holdID, b.id)
	if err != nil {
		return fmt.Errorf("payment: book seats: %w", err)
	}
	if n := int(tag.RowsAffected()); n != h.count {
		return fmt.Errorf("payment: book seats: %d of %d", n, h.count) // cannot be, all are locked
	}
	var holder uuid.UUID
	if err := tx.QueryRow(ctx, sqlHoldConfirmed, b.showtimeID, b.holdID).Scan(&holder); err != nil {
		return fmt.Errorf("payment: confirm hold: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlBookingConfirmed, b.showtimeID, b.id, h.now); err != nil {
		return fmt.Errorf("payment: confirm booking: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlPaymentCaptured, p.showtimeID, p.id, PaymentCaptured, p.amount, ""); err != nil {
		return fmt.Errorf("payment: capture: %w", err)
	}
	if err := issueTickets(ctx, tx, b); err != nil {
		return err
	}
	if _, err := outbox.Write(ctx, tx, b.event(outbox.BookingConfirmed, "")); err != nil {
		return err
	}
	// The fan's visit is over: both the one that took the seats and, when the fan
	// came in again in between, the one that paid. Last, for the session's row
	// comes after seats and holds in the order of locks.
	visits := []string{b.sessionID.String(), holder.String()}
	slices.Sort(visits)
	for _, s := range slices.Compact(visits) {
		if _, err := booking.EndSessionTx(ctx, tx, s, booking.EndConfirmed); err != nil {
			return err
		}
	}
	return nil
}

// event is what the outbox tells about b.
func (b bookingRow) event(kind, reason string) outbox.Event {
	return outbox.Event{
		Type: kind, BookingID: b.id, ShowtimeID: b.showtimeID, RoomID: b.room, CustomerID: b.customer,
		Seats: b.seats, Amount: b.amount, Refunded: b.refunded, Currency: b.currency, Reason: reason,
	}
}

func failBooking(ctx context.Context, tx pgx.Tx, b bookingRow, reason string) error {
	if _, err := tx.Exec(ctx, sqlBookingFailed, b.showtimeID, b.id, reason); err != nil {
		return fmt.Errorf("payment: fail booking: %w", err)
	}
	_, err := outbox.Write(ctx, tx, b.event(outbox.BookingFailed, reason))
	return err
}

// failIfHoldIsOver ends a booking that nobody can pay for any more: its hold is
// over and none of its payments is open. The booking is locked.
func failIfHoldIsOver(ctx context.Context, tx pgx.Tx, b bookingRow) error {
	if b.state != BookingPending {
		return nil
	}
	var over, released, paying bool
	if err := tx.QueryRow(ctx, sqlHoldIsOver, b.showtimeID, b.holdID, b.id).Scan(&over, &released, &paying); err != nil {
		return fmt.Errorf("payment: hold: %w", err)
	}
	switch {
	case !over || paying:
		return nil
	case released:
		return failBooking(ctx, tx, b, ReasonHoldReleased)
	}
	return failBooking(ctx, tx, b, ReasonHoldExpired)
}
