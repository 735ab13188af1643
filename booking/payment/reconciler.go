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

const (
	// Taking a payment up is a short transaction of its own: checked_at is the
	// claim, so that no lock is held while the provider is asked, and another
	// instance leaves the payment alone for a while.
	sqlTakeUp = `
		UPDATE payment p SET checked_at = clock_timestamp()
		  FROM (SELECT q.showtime_id, q.payment_id, q.booking_id, h.hold_id,
		               q.expires_at <= clock_timestamp() OR h.state NOT IN ('OPEN', 'PAYING')
		               OR h.expires_at <= clock_timestamp() AS over,
		               q.created_at <= clock_timestamp() - make_interval(secs => $5) AS old
		          FROM payment q
		          JOIN booking b ON b.showtime_id = q.showtime_id AND b.booking_id = q.booking_id
		          JOIN hold h ON h.showtime_id = b.showtime_id AND h.hold_id = b.hold_id
		         WHERE q.state = 'PENDING' AND q.provider = $4
		           AND (q.checked_at IS NULL OR q.checked_at <= clock_timestamp() - make_interval(secs => $2))
		           AND (q.created_at <= clock_timestamp() - make_interval(secs => $1)
		                OR q.expires_at <= clock_timestamp() OR h.state NOT IN ('OPEN', 'PAYING')
		                OR h.expires_at <= clock_timestamp())
		         ORDER BY q.checked_at NULLS FIRST, q.created_at LIMIT $3
		           FOR UPDATE OF q SKIP LOCKED) due
		  JOIN event e ON e.event_id = (SELECT event_id FROM showtime st WHERE st.showtime_id = due.showtime_id)
		 WHERE p.showtime_id = due.showtime_id AND p.payment_id = due.payment_id
		RETURNING p.showtime_id, p.payment_id, p.booking_id, p.amount, p.currency, p.expires_at,
		          COALESCE(p.provider_payment_id, ''), e.title, due.over, due.old`
	sqlAbandoned = `
		SELECT b.showtime_id, b.booking_id
		  FROM booking b JOIN hold h ON h.showtime_id = b.showtime_id AND h.hold_id = b.hold_id
		 WHERE b.state = 'PENDING'
		   AND (h.state NOT IN ('OPEN', 'PAYING') OR h.expires_at <= clock_timestamp())
		   AND NOT EXISTS (SELECT FROM payment p WHERE p.showtime_id = b.showtime_id
		                      AND p.booking_id = b.booking_id AND p.state = 'PENDING')
		 ORDER BY b.created_at LIMIT $1 FOR UPDATE OF b SKIP LOCKED`
	sqlRefundsDue = `SELECT count(*) FROM refund WHERE state = 'DUE'`
	sqlOldRefunds = `
		SELECT showtime_id, refund_id FROM refund
		 WHERE state = 'DUE' AND created_at <= clock_timestamp() - make_interval(secs => $1)
		 ORDER BY created_at LIMIT $2`
)

// roundSize bounds one round of one instance.
const roundSize = 50

// reconcileLoop finds what no callback told, until ctx ends.
func (d *Desk) reconcileLoop(ctx context.Context) error {
	t := time.NewTicker(d.opts.ReconcileEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := d.reconcileOnce(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("reconciler", "err", err)
		}
	}
}

// reconcileOnce is one round. A failure with one payment does not keep the
// others waiting.
func (d *Desk) reconcileOnce(ctx context.Context) error {
	return errors.Join(d.askProvider(ctx), d.sweepAbandoned(ctx), d.chaseRefunds(ctx))
}

// doubt is a payment the provider is asked about.
type doubt struct {
	attempt
	providerID string
	over       bool // its page or its hold is past its time
	old        bool // so old that nothing will be heard of it any more
}

func (d *Desk) askProvider(ctx context.Context) error {
	rows, err := d.pool.Query(ctx, sqlTakeUp, d.opts.ReconcileAfter.Seconds(), d.opts.ReconcileEvery.Seconds()*0.9, roundSize,
		d.provider.Name(), d.opts.GiveUpAfter.Seconds())
	if err != nil {
		return fmt.Errorf("payment: take up: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (q doubt, err error) {
		err = r.Scan(&q.showtimeID, &q.paymentID, &q.bookingID, &q.amount, &q.currency, &q.expiresAt, &q.providerID, &q.title, &q.over, &q.old)
		return q, err
	})
	if err != nil {
		return fmt.Errorf("payment: take up: %w", err)
	}
	var errs []error
	for _, q := range due {
		if ctx.Err() != nil {
			break
		}
		if err := d.askAbout(ctx, q); err != nil {
			errs = append(errs, fmt.Errorf("payment %s: %w", q.paymentID, err))
			if errors.Is(err, ErrProviderDown) {
				break // the rest would only wait for the same silence
			}
		}
	}
	return errors.Join(errs...)
}

// askAbout asks the provider what became of one payment and applies the answer.
func (d *Desk) askAbout(ctx context.Context, q doubt) error {
	d.metrics.reconciled.Inc()
	_, err := d.askAndSettle(ctx, "reconciler", q)
	return err
}

// askAndSettle is the way of everyone who asks the provider instead of being
// told: source is the metric's word for who asked.
func (d *Desk) askAndSettle(ctx context.Context, source string, q doubt) (Outcome, error) {
	o, err := d.whatBecame(ctx, q)
	if err != nil {
		return o, err
	}
	o.Reference = q.paymentID.String()
	var s settlement
	err = booking.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		s, err = d.settle(ctx, tx, o)
		return err
	})
	if err != nil {
		return o, err
	}
	if s.verdict != verdictNothing {
		d.finish(source, o, s)
	}
	return o, nil
}

// whatBecame asks the provider about q, and closes its page when it is over.
func (d *Desk) whatBecame(ctx context.Context, q doubt) (Outcome, error) {
	opened := q.providerID != ""
	if !opened {
		// The process died, or heard nothing, after asking for this payment. The
		// same key finds it there if it exists, and else opens one to be closed.
		c, err := d.provider.Create(ctx, d.createRequest(q.attempt))
		if errors.Is(err, ErrRefused) {
			d.log.Error("the provider refuses a payment", "payment", q.paymentID, "err", err)
			return Outcome{Status: StatusRefused}, nil
		}
		if err != nil {
			return Outcome{}, err
		}
		q.providerID = c.ProviderPaymentID
	}
	ask := d.provider.Fetch
	if q.over {
		ask = d.provider.Expire // a page that can still be paid is no use any more
	}
	o, err := ask(ctx, q.providerID)
	switch {
	case !errors.Is(err, ErrNotKnown):
		return o, err
	case !opened && q.over, q.old:
		// Nobody was ever shown the page; or nobody will hear of it any more. Money
		// that comes after all goes back by the usual path.
		return Outcome{ProviderPaymentID: q.providerID, Status: StatusExpired}, nil
	}
	// It opened this payment and denies it: the wrong account, or books it has lost.
	// The fan may have paid, so this is not for us to call unpaid; somebody must look.
	d.metrics.missing.Inc()
	d.log.Error("the provider does not know a payment it opened", "payment", q.paymentID, "providerPayment", q.providerID)
	return Outcome{ProviderPaymentID: q.providerID, Status: StatusProcessing}, nil
}

// sweepAbandoned fails bookings whose hold is over and that nobody is paying.
func (d *Desk) sweepAbandoned(ctx context.Context) error {
	return booking.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlAbandoned, roundSize)
		if err != nil {
			return fmt.Errorf("payment: abandoned: %w", err)
		}
		type key struct {
			ShowtimeID string
			ID         uuid.UUID
		}
		due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
		if err != nil {
			return fmt.Errorf("payment: abandoned: %w", err)
		}
		for _, k := range due {
			b, err := lockBooking(ctx, tx, k.ShowtimeID, k.ID)
			if err != nil {
				return err
			}
			if err := failIfHoldIsOver(ctx, tx, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// chaseRefunds counts refunds that wait, and gives those whose job was given up a
// new one; a refund with a living job keeps it.
func (d *Desk) chaseRefunds(ctx context.Context) error {
	var due int64
	if err := d.pool.QueryRow(ctx, sqlRefundsDue).Scan(&due); err != nil {
		return fmt.Errorf("payment: refunds due: %w", err)
	}
	d.metrics.refundsDue.Set(float64(due))
	rows, err := d.pool.Query(ctx, sqlOldRefunds, d.opts.ReconcileAfter.Seconds(), roundSize)
	if err != nil {
		return fmt.Errorf("payment: old refunds: %w", err)
	}
	old, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (j refundJob, err error) {
		err = r.Scan(&j.ShowtimeID, &j.RefundID)
		return j, err
	})
	if err != nil {
		return fmt.Errorf("payment: old refunds: %w", err)
	}
	var errs []error
	for _, j := range old {
		if _, err := d.jobs.Insert(ctx, j, nil); err != nil {
			errs = append(errs, fmt.Errorf("payment: refund job: %w", err))
		}
	}
	return errors.Join(errs...)
}
