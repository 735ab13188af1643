package payment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
)

// Checkout is an open payment for a hold.
type Checkout struct {
	BookingID  string    `json:"bookingId"`
	PaymentID  string    `json:"paymentId"`
	PaymentURL string    `json:"paymentUrl"`
	ExpiresAt  time.Time `json:"expiresAt"` // when the payment page closes
}

// Checkout opens a payment for a live hold of the caller; created is false when
// the answer was there before. body is the request's body as it came: with
// another body or hold the same key is booking.ErrKeyReused.
//
// The first checkout of a hold extends it, once. A payment of the hold that can
// still be paid is answered again, also to another key: two open pages for one
// hold would be two ways to pay twice. After a decline, or once the page's time
// is over while the hold lives, it opens a new attempt of the same booking, also
// under the key that opened the last one: a fan's page may keep one key a hold.
//
// Any living session of the hold's customer will do, also one of another room.
//
// Errors: booking.ErrUnknownHold, ErrRevoked, ErrHoldExpired (a *HoldLostError names the seats), ErrHoldNotOpen, ErrKeyReused; ErrInProgress; ErrProviderDown,
// after which the same key goes on with the same attempt and the provider's key.
func (d *Desk) Checkout(ctx context.Context, s booking.Session, holdID, key string, body []byte) (c Checkout, created bool, err error) {
	c, created, err = d.checkout(ctx, s, holdID, key, body)
	d.metrics.checkouts.WithLabelValues(checkoutLabel(created, err)).Inc()
	return c, created, err
}

func (d *Desk) checkout(ctx context.Context, s booking.Session, holdID, key string, body []byte) (Checkout, bool, error) {
	id, err := uuid.Parse(holdID)
	if err != nil {
		return Checkout{}, false, booking.ErrUnknownHold
	}
	var done *Checkout
	var a attempt
	err = booking.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		if done, err = d.claimKey(ctx, tx, s.Customer, key, requestHash(id, body)); err != nil || done != nil {
			return err
		}
		a, err = d.openAttempt(ctx, tx, s, id)
		return err
	})
	if err != nil {
		if booking.Unreachable(err) {
			// Whether the claim was committed is not known. Should a twin's be freed
			// by this, both ask the provider with one key: one payment all the same.
			d.freeKey(ctx, s.Customer, key)
		}
		return Checkout{}, false, err
	}
	if done != nil {
		return *done, false, nil
	}
	d.opts.SeatsChanged(a.showtimeID, a.seats, booking.SeatHeld, a.holdUntil.Sub(a.now))
	created := a.url == ""
	var providerID string
	if created {
		opened, err := d.provider.Create(ctx, d.createRequest(a))
		if err != nil {
			d.freeKey(ctx, s.Customer, key)
			return Checkout{}, false, d.asDown(err)
		}
		a.url, providerID = opened.URL, opened.ProviderPaymentID
	}
	c := Checkout{BookingID: a.bookingID.String(), PaymentID: a.paymentID.String(), PaymentURL: a.url, ExpiresAt: a.expiresAt.UTC()}
	if err := d.finishCheckout(ctx, s.Customer, key, a, providerID, c); err != nil {
		d.freeKey(ctx, s.Customer, key)
		return Checkout{}, false, err
	}
	return c, created, nil
}

// asDown makes a refusal of a new payment what it is to a fan: not available now.
func (d *Desk) asDown(err error) error {
	if errors.Is(err, ErrProviderDown) {
		return err
	}
	d.log.Error("the provider refuses a payment", "err", err)
	return fmt.Errorf("%w: %w", ErrProviderDown, err)
}

func (d *Desk) createRequest(a attempt) CreateRequest {
	return CreateRequest{
		Key: a.paymentID.String(), Reference: a.paymentID.String(), Amount: a.amount, Currency: a.currency,
		Description: a.title, ReturnURL: d.opts.ReturnURL(a.bookingID.String()), ExpiresAt: a.expiresAt.UTC(),
	}
}

// requestHash tells one request under a key from another; white space in the body
// makes no difference.
func requestHash(hold uuid.UUID, body []byte) string {
	var compact bytes.Buffer
	if len(bytes.TrimSpace(body)) == 0 {
		compact.WriteString("{}")
	} else if json.Compact(&compact, body) != nil {
		compact.Reset()
		compact.Write(body)
	}
	sum := sha256.Sum256(append(hold[:], compact.Bytes()...))
	return hex.EncodeToString(sum[:])
}

func checkoutLabel(created bool, err error) string {
	switch {
	case err == nil && created:
		return "opened"
	case err == nil:
		return "repeated"
	case errors.Is(err, booking.ErrRevoked):
		return "revoked"
	case errors.Is(err, booking.ErrHoldExpired), errors.Is(err, booking.ErrHoldNotOpen):
		return "hold-lost"
	case errors.Is(err, ErrProviderDown):
		return "provider-down"
	}
	return "refused"
}

const (
	sqlSetProvider = `
		UPDATE payment SET provider_payment_id = $3, payment_url = $4, updated_at = clock_timestamp()
		 WHERE showtime_id = $1 AND payment_id = $2 AND (provider_payment_id IS NULL OR provider_payment_id = $3)`
)

// finishCheckout remembers what the provider answered and what the caller is
// answered. Until it has committed, a crash loses nothing: the key's next owner
// asks the provider again with the attempt's own key.
func (d *Desk) finishCheckout(ctx context.Context, customer, key string, a attempt, providerID string, c Checkout) error {
	answer, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("payment: answer: %w", err)
	}
	return booking.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		if providerID != "" {
			if _, err := tx.Exec(ctx, sqlSetProvider, a.showtimeID, a.paymentID, providerID, a.url); err != nil {
				return fmt.Errorf("payment: provider's id: %w", err)
			}
		}
		if _, err := tx.Exec(ctx, sqlKeyDone, customer, key, answer); err != nil {
			return fmt.Errorf("payment: key: %w", err)
		}
		return nil
	})
}
