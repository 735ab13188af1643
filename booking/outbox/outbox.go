// Package outbox keeps what other systems must hear about: an event is written
// in the transaction that decided it, so there is no booking without its event
// and no event without its booking.
//
// Events of one booking are numbered from 1 under the booking's row lock. A
// consumer orders and drops duplicates by (bookingId, seq); nothing may be read
// off the order of rows of different bookings, for transactions commit out of
// order.
package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The kinds of event.
const (
	BookingConfirmed = "BookingConfirmed"
	BookingFailed    = "BookingFailed"
	BookingRefunded  = "BookingRefunded"
)

// Event is one thing that happened to a booking. ID, Seq and OccurredAt are set
// by Write.
type Event struct {
	ID         uuid.UUID `json:"eventId"`
	Type       string    `json:"type"`
	Seq        int       `json:"seq"` // per booking, from 1
	OccurredAt time.Time `json:"occurredAt"`
	BookingID  uuid.UUID `json:"bookingId"`
	ShowtimeID string    `json:"showtimeId"`
	RoomID     string    `json:"roomId"`
	CustomerID string    `json:"customerId"`
	Seats      []string  `json:"seats"`
	Amount     int64     `json:"amount"` // of the booking; minor units
	Refunded   int64     `json:"refundedAmount"`
	Currency   string    `json:"currency"`
	Reason     string    `json:"reason,omitempty"` // why it failed or was refunded
}

var statements = map[string]string{
	"next": `
		SELECT coalesce(max(seq), 0) + 1, clock_timestamp()
		  FROM outbox WHERE showtime_id = $1 AND booking_id = $2`,
	"insert": `
		INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
		VALUES ($1, $2, $3, $4, $5, $6)`,
}

// Write adds e to the outbox within tx and returns it as written. The caller
// holds the booking's row lock: without it two writers would choose one number
// and the second would fail on the unique key.
func Write(ctx context.Context, tx pgx.Tx, e Event) (Event, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Event{}, fmt.Errorf("outbox: id: %w", err)
	}
	e.ID = id
	if err := tx.QueryRow(ctx, statements["next"], e.ShowtimeID, e.BookingID).Scan(&e.Seq, &e.OccurredAt); err != nil {
		return Event{}, fmt.Errorf("outbox: number: %w", err)
	}
	e.OccurredAt = e.OccurredAt.UTC()
	payload, err := json.Marshal(e)
	if err != nil {
		return Event{}, fmt.Errorf("outbox: payload: %w", err)
	}
	if _, err := tx.Exec(ctx, statements["insert"], e.ShowtimeID, e.ID, e.BookingID, e.Seq, e.Type, payload); err != nil {
		return Event{}, fmt.Errorf("outbox: write: %w", err)
	}
	return e, nil
}
