package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
)

const (
	sqlKeyClaim = `
		INSERT INTO idempotency (customer_id, call, key, request_hash, locked_until)
		VALUES ($1, 'checkout', $2, $3, clock_timestamp() + make_interval(secs => $4))
		ON CONFLICT DO NOTHING`
	sqlKeyRead = `
		SELECT request_hash, state = 'DONE', locked_until > clock_timestamp(), response
		  FROM idempotency WHERE customer_id = $1 AND call = 'checkout' AND key = $2 FOR UPDATE`
	// A statement of its own, so that it sees what a twin committed while this one
	// waited for the key.
	sqlAnswerStands = `
		SELECT EXISTS (
		       SELECT FROM payment p JOIN booking b ON b.showtime_id = p.showtime_id AND b.booking_id = p.booking_id
		        WHERE p.payment_id = $1
		          AND (p.state = 'PENDING' AND p.expires_at > clock_timestamp() OR b.state IN ('CONFIRMED', 'REFUNDED')))`
	sqlKeyTake = `
		UPDATE idempotency SET state = 'RUNNING', locked_until = clock_timestamp() + make_interval(secs => $3)
		 WHERE customer_id = $1 AND call = 'checkout' AND key = $2`
	sqlKeyDone = `
		UPDATE idempotency SET state = 'DONE', response = $3
		 WHERE customer_id = $1 AND call = 'checkout' AND key = $2`
	sqlKeyFree = `
		UPDATE idempotency SET locked_until = clock_timestamp()
		 WHERE customer_id = $1 AND call = 'checkout' AND key = $2 AND state = 'RUNNING'`
	sqlKeyHash = `
		SELECT request_hash FROM idempotency WHERE customer_id = $1 AND call = 'checkout' AND key = $2`
)

// claimKey makes the caller the one who works on key, or returns the answer it
// already has, while that answer is still good: its page can be paid on, or its
// booking was. An answer whose page is dead is no use to anybody, so the key goes
// on with the next attempt and is answered with that. The row is committed with the attempt, before the provider hears
// of it; a claim whose owner died is free again after its lease.
func (d *Desk) claimKey(ctx context.Context, tx pgx.Tx, customer, key, hash string) (*Checkout, error) {
	lease := (d.opts.ProviderTimeout + keyMargin).Seconds()
	tag, err := tx.Exec(ctx, sqlKeyClaim, customer, key, hash, lease)
	if err != nil {
		return nil, fmt.Errorf("payment: key: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil, nil //nolint:nilnil // nothing answered yet, and no error
	}
	var had string
	var done, locked bool
	var answer []byte
	if err := tx.QueryRow(ctx, sqlKeyRead, customer, key).Scan(&had, &done, &locked, &answer); err != nil {
		return nil, fmt.Errorf("payment: key: %w", err)
	}
	switch {
	case had != hash:
		return nil, booking.ErrKeyReused
	case !done && locked:
		return nil, ErrInProgress
	case done:
		var c Checkout
		if err := json.Unmarshal(answer, &c); err != nil {
			return nil, fmt.Errorf("payment: remembered answer: %w", err)
		}
		var stands bool
		if err := tx.QueryRow(ctx, sqlAnswerStands, c.PaymentID).Scan(&stands); err != nil {
			return nil, fmt.Errorf("payment: remembered answer: %w", err)
		}
		if stands {
			return &c, nil
		}
	}
	if _, err := tx.Exec(ctx, sqlKeyTake, customer, key, lease); err != nil {
		return nil, fmt.Errorf("payment: key: %w", err)
	}
	return nil, nil //nolint:nilnil // as above
}

// keyMargin is what a claim lasts beyond the provider's time limit.
const keyMargin = 15 * time.Second

// freeKey lets the same key be tried again at once. It is a courtesy: when it
// fails, the lease ends by itself.
func (d *Desk) freeKey(ctx context.Context, customer, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if _, err := d.pool.Exec(ctx, sqlKeyFree, customer, key); err != nil {
		d.log.Warn("key not freed", "err", err)
	}
}

// KeyConflict tells whether key was used for another request of this customer:
// an HTTP layer asks before it refuses a body for its shape, so that a reused
// key is always named as such. It returns booking.ErrKeyReused or nil.
func (d *Desk) KeyConflict(ctx context.Context, s booking.Session, holdID, key string, body []byte) error {
	id, err := uuid.Parse(holdID)
	if err != nil {
		return nil //nolint:nilerr // an unknown hold has used no key
	}
	var had string
	err = d.pool.QueryRow(ctx, sqlKeyHash, s.Customer, key).Scan(&had)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("payment: key: %w", err)
	case had != requestHash(id, body):
		return booking.ErrKeyReused
	}
	return nil
}
