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
	sqlInsertRefund = `
		INSERT INTO refund (showtime_id, refund_id, payment_id, booking_id, amount, reason)
		VALUES ($1, $2, $3, $4, $5, $6)`
	sqlReadRefund = `
		SELECT r.state = 'DONE', r.payment_id, r.amount, p.currency, COALESCE(p.provider_payment_id, '')
		  FROM refund r JOIN payment p ON p.showtime_id = r.showtime_id AND p.payment_id = r.payment_id
		 WHERE r.showtime_id = $1 AND r.refund_id = $2`
	sqlLockPaymentRow = `SELECT 1 FROM payment WHERE showtime_id = $1 AND payment_id = $2 FOR UPDATE`
	sqlRefundDone     = `
		UPDATE refund SET state = 'DONE', provider_refund_id = $3, done_at = clock_timestamp()
		 WHERE showtime_id = $1 AND refund_id = $2 AND state = 'DUE'`
	// A payment is given back when all of it is.
	sqlCloseRefunded = `
		UPDATE payment p SET state = 'REFUNDED', updated_at = clock_timestamp()
		 WHERE p.showtime_id = $1 AND p.payment_id = $2 AND p.state = 'REFUND_DUE'
		   AND p.captured_amount = (SELECT COALESCE(sum(r.amount), 0) FROM refund r
		                             WHERE r.showtime_id = $1 AND r.payment_id = $2 AND r.state = 'DONE')`
)

// giveBack records that a payment's whole amount is owed to the fan and orders
// the job that pays it out.
func (d *Desk) giveBack(ctx context.Context, tx pgx.Tx, p paymentRow, amount int64, reason string) error {
	if _, err := tx.Exec(ctx, sqlPaymentCaptured, p.showtimeID, p.id, PaymentRefundDue, amount, reason); err != nil {
		return fmt.Errorf("payment: refund due: %w", err)
	}
	return d.orderRefund(ctx, tx, p, amount, reason)
}

// orderRefund writes the refund and its job. Nothing is owed for a free seat:
// then the payment is closed at once.
func (d *Desk) orderRefund(ctx context.Context, tx pgx.Tx, p paymentRow, amount int64, reason string) error {
	if amount <= 0 {
		_, err := tx.Exec(ctx, sqlCloseRefunded, p.showtimeID, p.id)
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("payment: id: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlInsertRefund, p.showtimeID, id, p.id, p.bookingID, amount, reason); err != nil {
		return fmt.Errorf("payment: refund: %w", err)
	}
	if _, err := d.jobs.InsertTx(ctx, tx, refundJob{ShowtimeID: p.showtimeID, RefundID: id}, nil); err != nil {
		return fmt.Errorf("payment: refund job: %w", err)
	}
	return nil
}

// payOut asks the provider for one refund and records it. It may run any number
// of times: the refund's id is the provider's key, and only the first record
// counts.
func (d *Desk) payOut(ctx context.Context, showtimeID string, refundID uuid.UUID) error {
	var done bool
	var paymentID uuid.UUID
	r := RefundRequest{Key: refundID.String()}
	err := d.pool.QueryRow(ctx, sqlReadRefund, showtimeID, refundID).Scan(&done, &paymentID, &r.Amount, &r.Currency, &r.ProviderPaymentID)
	switch {
	case err != nil:
		return fmt.Errorf("payment: refund: %w", err)
	case done:
		return nil
	case r.ProviderPaymentID == "":
		return fmt.Errorf("payment: refund %s: the payment has no provider id", refundID)
	}
	providerRefund, err := d.provider.Refund(ctx, r)
	if err != nil {
		if errors.Is(err, ErrRefused) || errors.Is(err, ErrNotKnown) {
			d.log.Error("the provider refuses a refund", "refund", refundID, "err", err)
		}
		return err
	}
	err = booking.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockPaymentRow, showtimeID, paymentID); err != nil {
			return fmt.Errorf("payment: lock: %w", err)
		}
		if _, err := tx.Exec(ctx, sqlRefundDone, showtimeID, refundID, providerRefund); err != nil {
			return fmt.Errorf("payment: refund done: %w", err)
		}
		if _, err := tx.Exec(ctx, sqlCloseRefunded, showtimeID, paymentID); err != nil {
			return fmt.Errorf("payment: refunded: %w", err)
		}
		return nil
	})
	if err == nil {
		d.metrics.refunded.Inc()
	}
	return err
}
