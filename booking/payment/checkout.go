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

// Checkout opens a payment for a live hold of the caller; created is false when
// the answer was there before. body is the request's body as it came: with
// another body or hold the same key is booking.ErrKeyReused.
//
// The first checkout of a hold extends it, once. A payment of the hold that can
// still be paid is answered again, also to another key: two open pages for one
// hold would be two ways to pay twice. After a decline it opens a new attempt of
// the same booking.
//
// Errors: booking.ErrUnknownHold, ErrWrongRoom, ErrHoldExpired (a *HoldLostError
// names the seats), ErrHoldNotOpen, ErrKeyReused; ErrInProgress; ErrProviderDown,
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
	return c, created, d.finishCheckout(ctx, s.Customer, key, a, providerID, c)
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
	case errors.Is(err, booking.ErrHoldExpired), errors.Is(err, booking.ErrHoldNotOpen):
		return "hold-lost"
	case errors.Is(err, ErrProviderDown):
		return "provider-down"
	}
	return "refused"
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

// openAttempt finds or makes the booking and its payable attempt. Order of locks:
// booking, seats, hold; the booking's row is the gate between two checkouts of
// one hold.
func (d *Desk) openAttempt(ctx context.Context, tx pgx.Tx, s booking.Session, holdID uuid.UUID) (attempt, error) {
	var a attempt
	var scope, room string
	err := tx.QueryRow(ctx, sqlHoldForCheckout, holdID, s.Customer).
		Scan(&a.showtimeID, &scope, &a.seats, &a.amount, &a.currency, &room, &a.title)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return a, booking.ErrUnknownHold
	case err != nil:
		return a, fmt.Errorf("payment: hold: %w", err)
	case room != s.Room:
		return a, booking.ErrWrongRoom
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
