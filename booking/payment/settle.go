package payment

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
)

// What became of a payment when an outcome was applied; also the metric's labels.
const (
	verdictConfirmed = "confirmed"
	verdictRefund    = "refund-due"
	verdictFailed    = "failed"    // declined, or its page expired unpaid
	verdictNothing   = "nothing"   // known already, or not final yet
	verdictDuplicate = "duplicate" // the same delivery again
	verdictUnknown   = "unknown"   // no payment of ours
)

// settlement is what one applied outcome did; effects outside the database wait
// for the commit.
type settlement struct {
	verdict    string
	showtimeID string
	sold, free []string
}

// announce tells this process's maps and the events' relay after the commit.
func (d *Desk) announce(s settlement) {
	d.opts.EventsWritten()
	if len(s.sold) > 0 {
		d.opts.SeatsChanged(s.showtimeID, s.sold, booking.SeatBooked, 0)
	}
	if len(s.free) > 0 {
		d.opts.SeatsChanged(s.showtimeID, s.free, booking.SeatAvailable, 0)
	}
}

// paymentRow is a locked payment.
type paymentRow struct {
	showtimeID, state, currency, providerID string
	id, bookingID                           uuid.UUID
	amount                                  int64
}

// bookingRow is a locked booking.
type bookingRow struct {
	showtimeID, scope, customer, room string
	state, reason, currency           string
	id, holdID, sessionID             uuid.UUID
	seats                             []string
	amount, refunded                  int64
}

const (
	sqlLockPayment = `
		SELECT showtime_id, payment_id, booking_id, state, amount, currency, COALESCE(provider_payment_id, '')
		  FROM payment WHERE payment_id = $1 AND provider = $2 FOR UPDATE`
	sqlFindPayment = `
		SELECT payment_id FROM payment WHERE provider = $1 AND provider_payment_id = $2`
	sqlLockBooking = `
		SELECT showtime_id, booking_id, hold_id, scope_id, customer_id, session_id, room_id, seats,
		       amount, refunded_amount, currency, state, reason
		  FROM booking WHERE showtime_id = $1 AND booking_id = $2 FOR UPDATE`
	sqlBindProvider = `
		UPDATE payment SET provider_payment_id = $3, updated_at = clock_timestamp()
		 WHERE showtime_id = $1 AND payment_id = $2 AND provider_payment_id IS NULL`
	sqlPaymentFailed = `
		UPDATE payment SET state = 'FAILED', reason = $3, updated_at = clock_timestamp()
		 WHERE showtime_id = $1 AND payment_id = $2 AND state = 'PENDING'`
	sqlPaymentCaptured = `
		UPDATE payment SET state = $3, captured_amount = $4, reason = $5, updated_at = clock_timestamp()
		 WHERE showtime_id = $1 AND payment_id = $2 AND state IN ('PENDING', 'FAILED')`
)

// settle applies what the provider says about one payment: the single way by
// which callback and reconciler change a booking. Order of locks: payment,
// booking, seats, hold. Applying an outcome twice changes nothing the second
// time, in whatever order outcomes arrive.
func (d *Desk) settle(ctx context.Context, tx pgx.Tx, o Outcome) (settlement, error) {
	if err := booking.FenceTx(ctx, tx); err != nil {
		return settlement{}, err
	}
	p, err := d.lockPayment(ctx, tx, o)
	if err != nil || p == nil {
		return settlement{verdict: verdictUnknown}, err
	}
	// Never an empty id: it is no payment's, and the second one would break UNIQUE.
	if p.providerID == "" && o.ProviderPaymentID != "" {
		if _, err := tx.Exec(ctx, sqlBindProvider, p.showtimeID, p.id, o.ProviderPaymentID); err != nil {
			return settlement{}, fmt.Errorf("payment: provider's id: %w", err)
		}
	}
	switch o.Status {
	case StatusPaid:
		return d.settlePaid(ctx, tx, *p, o)
	case StatusDeclined, StatusExpired, StatusRefused:
		return d.settleUnpaid(ctx, tx, *p, string(o.Status))
	case StatusOpen, StatusProcessing:
	}
	return settlement{verdict: verdictNothing}, nil
}

// lockPayment finds the payment by our reference, else by the provider's id; nil
// when it is not ours.
func (d *Desk) lockPayment(ctx context.Context, tx pgx.Tx, o Outcome) (*paymentRow, error) {
	id, err := uuid.Parse(o.Reference)
	if err != nil {
		err = tx.QueryRow(ctx, sqlFindPayment, d.provider.Name(), o.ProviderPaymentID).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil //nolint:nilnil // not ours
		}
		if err != nil {
			return nil, fmt.Errorf("payment: find: %w", err)
		}
	}
	var p paymentRow
	err = tx.QueryRow(ctx, sqlLockPayment, id, d.provider.Name()).
		Scan(&p.showtimeID, &p.id, &p.bookingID, &p.state, &p.amount, &p.currency, &p.providerID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // not ours
	case err != nil:
		return nil, fmt.Errorf("payment: lock: %w", err)
	case p.providerID != "" && p.providerID != o.ProviderPaymentID:
		// One attempt has one key and so one payment there; another id with our
		// reference is not something to take money for.
		d.log.Error("a callback names our payment under another id", "payment", p.id, "known", p.providerID, "got", o.ProviderPaymentID)
		return nil, nil //nolint:nilnil // not ours
	}
	return &p, nil
}

func lockBooking(ctx context.Context, tx pgx.Tx, showtimeID string, id uuid.UUID) (bookingRow, error) {
	var b bookingRow
	err := tx.QueryRow(ctx, sqlLockBooking, showtimeID, id).
		Scan(&b.showtimeID, &b.id, &b.holdID, &b.scope, &b.customer, &b.sessionID, &b.room, &b.seats,
			&b.amount, &b.refunded, &b.currency, &b.state, &b.reason)
	if err != nil {
		return b, fmt.Errorf("payment: booking: %w", err)
	}
	return b, nil
}

// settlePaid books, or gives the money back.
func (d *Desk) settlePaid(ctx context.Context, tx pgx.Tx, p paymentRow, o Outcome) (settlement, error) {
	if p.state != PaymentPending && p.state != PaymentFailed {
		return settlement{verdict: verdictNothing}, nil // the money is accounted for
	}
	b, err := lockBooking(ctx, tx, p.showtimeID, p.bookingID)
	if err != nil {
		return settlement{}, err
	}
	switch b.state {
	case BookingConfirmed, BookingRefunded:
		return settlement{verdict: verdictRefund}, d.giveBack(ctx, tx, p, o.Amount, ReasonSecondPayment)
	case BookingFailed:
		return settlement{verdict: verdictRefund}, d.giveBack(ctx, tx, p, o.Amount, ReasonBookingOver)
	}
	h, err := lockHold(ctx, tx, b.showtimeID, b.holdID, b.seats)
	if err != nil {
		return settlement{}, err
	}
	switch {
	case o.Amount != p.amount || o.Currency != p.currency:
		return d.refuse(ctx, tx, p, b, h, o.Amount, ReasonAmountMismatch)
	case h.revoked, !h.whole():
		return d.refuse(ctx, tx, p, b, h, o.Amount, h.lossReason())
	}
	if err := d.confirm(ctx, tx, p, b, h); err != nil {
		return settlement{}, err
	}
	return settlement{verdict: verdictConfirmed, showtimeID: b.showtimeID, sold: b.seats}, nil
}

// refuse fails the booking and gives the money back, in the same transaction.
func (d *Desk) refuse(ctx context.Context, tx pgx.Tx, p paymentRow, b bookingRow, h heldState, amount int64, reason string) (settlement, error) {
	if err := d.giveBack(ctx, tx, p, amount, reason); err != nil {
		return settlement{}, err
	}
	if err := failBooking(ctx, tx, b, reason); err != nil {
		return settlement{}, err
	}
	return settlement{verdict: verdictRefund, showtimeID: b.showtimeID, free: h.mine}, letGo(ctx, tx, b.showtimeID, b.holdID, h)
}

// settleUnpaid ends an attempt. While the hold lives the booking stays open for
// another; without it there is nothing left to pay for.
func (d *Desk) settleUnpaid(ctx context.Context, tx pgx.Tx, p paymentRow, reason string) (settlement, error) {
	if p.state != PaymentPending {
		return settlement{verdict: verdictNothing}, nil
	}
	if _, err := tx.Exec(ctx, sqlPaymentFailed, p.showtimeID, p.id, reason); err != nil {
		return settlement{}, fmt.Errorf("payment: fail: %w", err)
	}
	b, err := lockBooking(ctx, tx, p.showtimeID, p.bookingID)
	if err != nil {
		return settlement{}, err
	}
	return settlement{verdict: verdictFailed}, failIfHoldIsOver(ctx, tx, b)
}
