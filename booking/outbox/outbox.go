// Package outbox keeps what other systems must hear about: an event is written
// in the transaction that decided it, so there is no booking without its event
// and no event without its booking.
//
// Events of one booking are numbered from 1 under the booking's row lock; nothing may be
// read off the order of rows of different bookings, for transactions commit out of order.
//
// # Sending
//
// A relay leases the oldest unsent event of each booking, sends what it leased, marks
// what arrived, and begins again; so a booking's second event leaves after its first is
// marked, and any number of relays share the work. One that dies leaves its events to
// the others when its lease is over (a minute). An event that cannot be sent is tried
// again every two seconds and keeps the later ones of its booking, nobody else's.
// NOTIFY, after the commit, wakes all relays; without it they look each second.
//
// Nothing is deleted: the rows are the books that usher audit reads.
//
// # Consuming
//
// An event arrives at least once. Twice, when an answer of the broker was lost or a
// relay died between sending and marking, and then possibly late: after a newer one of
// the same booking. So a consumer keeps the highest seq it has worked for each booking
// and drops what is not above it. In this way it sees each event once, in order: a gap
// cannot be (seq 3 is sent when 2 has arrived). Unknown fields and types are to be
// ignored: more will come.
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
