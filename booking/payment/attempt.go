package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
)

// attempt is one payment as a checkout needs it.
type attempt struct {
	showtimeID, title, currency string
	paymentID, bookingID        uuid.UUID
	amount                      int64
	url                         string // "" until the provider has answered
	expiresAt                   time.Time
	seats                       []string
	holdUntil, now              time.Time // by the database's clock
}

const (
	sqlHoldForCheckout = `
		SELECT h.showtime_id, h.scope_id, h.seats, h.amount, h.currency, st.room_id, e.title
		  FROM hold h JOIN showtime st ON st.showtime_id = h.showtime_id JOIN event e ON e.event_id = st.event_id
		 WHERE h.hold_id = $1 AND h.customer_id = $2`
	sqlInsertBooking = `
		INSERT INTO booking (showtime_id, booking_id, hold_id, scope_id, customer_id, session_id, room_id,
		                     seats, seat_count, amount, currency)
		SELECT h.showtime_id, $3, h.hold_id, h.scope_id, h.customer_id, $4, $5, h.seats, h.seat_count, h.amount, h.currency
		  FROM hold h WHERE h.showtime_id = $1 AND h.hold_id = $2
		ON CONFLICT (showtime_id, hold_id) DO NOTHING`
	sqlLockBookingOfHold = `
		SELECT booking_id, state FROM booking WHERE showtime_id = $1 AND hold_id = $2 FOR UPDATE`
	sqlLatestPayment = `
		SELECT payment_id, attempt, payment_url, expires_at, state = 'PENDING' AND expires_at > clock_timestamp()
		  FROM payment WHERE showtime_id = $1 AND booking_id = $2 ORDER BY attempt DESC LIMIT 1`
	sqlInsertPayment = `
		INSERT INTO payment (showtime_id, payment_id, booking_id, attempt, provider, amount, currency, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
)

// openAttempt finds or makes the booking and its payable attempt. The hold is the
// proof: a fan who has entered another room since may still pay for it. Order of locks:
// booking, seats, hold; the booking's row is the gate between two checkouts of
// one hold.
func (d *Desk) openAttempt(ctx context.Context, tx pgx.Tx, s booking.Session, holdID uuid.UUID) (attempt, error) {
	var a attempt
	var scope, room string
	if err := booking.FenceTx(ctx, tx); err != nil {
		return a, err
	}
	err := tx.QueryRow(ctx, sqlHoldForCheckout, holdID, s.Customer).
		Scan(&a.showtimeID, &scope, &a.seats, &a.amount, &a.currency, &room, &a.title)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return a, booking.ErrUnknownHold
	case err != nil:
		return a, fmt.Errorf("payment: hold: %w", err)
	}
	if err := d.gateBooking(ctx, tx, s, room, holdID, &a); err != nil {
		return a, err
	}
	h, err := lockHold(ctx, tx, a.showtimeID, holdID, a.seats)
	if err != nil {
		return a, err
	}
	if err := h.payable(); err != nil {
		return a, err
	}
	if a.holdUntil, err = d.startPaying(ctx, tx, a.showtimeID, holdID, h); err != nil {
		return a, err
	}
	a.now = h.now
	return a, d.payableAttempt(ctx, tx, &a)
}

// gateBooking inserts the booking when it is not there and locks it.
func (d *Desk) gateBooking(ctx context.Context, tx pgx.Tx, s booking.Session, room string, holdID uuid.UUID, a *attempt) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("payment: id: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlInsertBooking, a.showtimeID, holdID, id, s.ID, room); err != nil {
		return fmt.Errorf("payment: new booking: %w", err)
	}
	var state string
	if err := tx.QueryRow(ctx, sqlLockBookingOfHold, a.showtimeID, holdID).Scan(&a.bookingID, &state); err != nil {
		return fmt.Errorf("payment: booking: %w", err)
	}
	switch state {
	case BookingPending:
		return nil
	case BookingFailed:
		return booking.ErrHoldExpired
	}
	return booking.ErrHoldNotOpen
}

// payableAttempt takes the attempt that can still be paid, or opens the next.
func (d *Desk) payableAttempt(ctx context.Context, tx pgx.Tx, a *attempt) error {
	var n int
	var live bool
	err := tx.QueryRow(ctx, sqlLatestPayment, a.showtimeID, a.bookingID).Scan(&a.paymentID, &n, &a.url, &a.expiresAt, &live)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("payment: attempts: %w", err)
	}
	if live {
		return nil
	}
	if a.paymentID, err = uuid.NewV7(); err != nil {
		return fmt.Errorf("payment: id: %w", err)
	}
	a.url = ""
	a.expiresAt = a.now.Add(d.opts.PaymentLife)
	if a.holdUntil.Before(a.expiresAt) {
		a.expiresAt = a.holdUntil
	}
	_, err = tx.Exec(ctx, sqlInsertPayment, a.showtimeID, a.paymentID, a.bookingID, n+1, d.provider.Name(), a.amount, a.currency, a.expiresAt)
	if err != nil {
		return fmt.Errorf("payment: new attempt: %w", err)
	}
	return nil
}
