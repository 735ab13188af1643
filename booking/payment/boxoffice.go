package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
	"usher/booking/outbox"
)

// RefundOrder is what the box office asks to give back.
type RefundOrder struct {
	Tickets []string // ticket ids; none: every valid ticket
	Reason  string   // for the books; "": "box-office"
}

const (
	sqlFindBooking = `SELECT showtime_id, booking_id FROM booking WHERE booking_id = $1`
	sqlLockPaidOf  = `
		SELECT showtime_id, payment_id, booking_id, state, amount, currency, COALESCE(provider_payment_id, '')
		  FROM payment WHERE showtime_id = $1 AND booking_id = $2 AND state = 'CAPTURED' FOR UPDATE`
	sqlLockTickets = `
		SELECT ticket_id, seat_code, amount, state = 'VALID'
		  FROM ticket WHERE showtime_id = $1 AND booking_id = $2 ORDER BY ticket_id FOR UPDATE`
	sqlFreeBooked = `
		UPDATE show_seat
		   SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL, booking_id = NULL
		 WHERE showtime_id = $1 AND seat_code = ANY($2) AND booking_id = $3 AND status = 'BOOKED'`
	sqlTicketsRefunded = `
		UPDATE ticket SET state = 'REFUNDED'
		 WHERE showtime_id = $1 AND ticket_id = ANY($2) AND state = 'VALID'`
	sqlBookingGivenBack = `
		UPDATE booking SET refunded_amount = refunded_amount + $3, state = $4, reason = $5
		 WHERE showtime_id = $1 AND booking_id = $2 AND state = 'CONFIRMED'`
	sqlPaymentDue = `
		UPDATE payment SET state = 'REFUND_DUE', reason = $3, updated_at = clock_timestamp()
		 WHERE showtime_id = $1 AND payment_id = $2 AND state = 'CAPTURED'`
	sqlAudit = `INSERT INTO audit_log (actor, action, subject, detail) VALUES ($1, $2, $3, $4)`
)

// Refund takes tickets back, frees their seats at once and orders the money's
// return: BOOKED becomes AVAILABLE in no other way. Who asked is in the audit log
// in the same transaction. It returns the booking as it is afterwards.
//
// Errors: ErrUnknownBooking, ErrUnknownTicket, ErrNotRefundable (never paid,
// failed, or a ticket given back already): two orders at once for the same
// tickets give the money back once.
func (d *Desk) Refund(ctx context.Context, actor, bookingID string, r RefundOrder) (Booking, error) {
	id, err := uuid.Parse(bookingID)
	if err != nil {
		return Booking{}, ErrUnknownBooking
	}
	if r.Reason == "" {
		r.Reason = "box-office"
	}
	var out settlement
	err = booking.InTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
		out, err = d.takeBack(ctx, tx, actor, id, r)
		return err
	})
	if err != nil {
		return Booking{}, err
	}
	d.announce(out)
	return d.readBooking(ctx, id, "")
}

// takeBack is the transaction of Refund. Order of locks: payment, booking,
// seats, tickets.
func (d *Desk) takeBack(ctx context.Context, tx pgx.Tx, actor string, id uuid.UUID, r RefundOrder) (settlement, error) {
	p, b, err := lockPaidBooking(ctx, tx, id)
	if err != nil {
		return settlement{}, err
	}
	// Seats before tickets, as in confirm; all of the booking's, since which
	// tickets are still valid is only known under the booking's lock.
	if _, err := tx.Exec(ctx, sqlLockSeats, b.showtimeID, b.seats); err != nil {
		return settlement{}, fmt.Errorf("payment: lock seats: %w", err)
	}
	back, err := chooseTickets(ctx, tx, b, r.Tickets)
	if err != nil {
		return settlement{}, err
	}
	tag, err := tx.Exec(ctx, sqlFreeBooked, b.showtimeID, back.seats, b.id)
	if err != nil {
		return settlement{}, fmt.Errorf("payment: free seats: %w", err)
	}
	if int(tag.RowsAffected()) != len(back.seats) {
		return settlement{}, fmt.Errorf("payment: free seats: %d of %d belong to the booking", tag.RowsAffected(), len(back.seats))
	}
	if _, err := tx.Exec(ctx, sqlTicketsRefunded, b.showtimeID, back.ids); err != nil {
		return settlement{}, fmt.Errorf("payment: tickets: %w", err)
	}
	state, reason := BookingConfirmed, ""
	if back.whole {
		state, reason = BookingRefunded, r.Reason
		if _, err := tx.Exec(ctx, sqlPaymentDue, p.showtimeID, p.id, r.Reason); err != nil {
			return settlement{}, fmt.Errorf("payment: refund due: %w", err)
		}
	}
	if _, err := tx.Exec(ctx, sqlBookingGivenBack, b.showtimeID, b.id, back.amount, state, reason); err != nil {
		return settlement{}, fmt.Errorf("payment: booking: %w", err)
	}
	if err := d.orderRefund(ctx, tx, p, back.amount, r.Reason); err != nil {
		return settlement{}, err
	}
	b.refunded += back.amount
	return settlement{showtimeID: b.showtimeID, free: back.seats}, writeDown(ctx, tx, actor, b, back, r.Reason)
}

// lockPaidBooking locks the payment that bought the booking, then the booking.
func lockPaidBooking(ctx context.Context, tx pgx.Tx, id uuid.UUID) (p paymentRow, b bookingRow, err error) {
	err = tx.QueryRow(ctx, sqlFindBooking, id).Scan(&b.showtimeID, &b.id)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, b, ErrUnknownBooking
	}
	if err != nil {
		return p, b, fmt.Errorf("payment: booking: %w", err)
	}
	err = tx.QueryRow(ctx, sqlLockPaidOf, b.showtimeID, id).
		Scan(&p.showtimeID, &p.id, &p.bookingID, &p.state, &p.amount, &p.currency, &p.providerID)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, b, ErrNotRefundable
	}
	if err != nil {
		return p, b, fmt.Errorf("payment: lock: %w", err)
	}
	if b, err = lockBooking(ctx, tx, b.showtimeID, id); err == nil && b.state != BookingConfirmed {
		err = ErrNotRefundable
	}
	return p, b, err
}

// giving is the part of a booking that is taken back.
type giving struct {
	ids    []uuid.UUID
	seats  []string
	amount int64
	whole  bool // nothing valid remains
}

// chooseTickets locks the booking's tickets and picks the wanted ones, or all
// valid ones.
func chooseTickets(ctx context.Context, tx pgx.Tx, b bookingRow, wanted []string) (giving, error) {
	var g giving
	want := map[uuid.UUID]bool{}
	for _, w := range wanted {
		id, err := uuid.Parse(w)
		if err != nil {
			return g, ErrUnknownTicket
		}
		want[id] = true
	}
	rows, err := tx.Query(ctx, sqlLockTickets, b.showtimeID, b.id)
	if err != nil {
		return g, fmt.Errorf("payment: tickets: %w", err)
	}
	var id uuid.UUID
	var seat string
	var amount int64
	var valid bool
	left := 0
	_, err = pgx.ForEachRow(rows, []any{&id, &seat, &amount, &valid}, func() error {
		asked := want[id]
		delete(want, id)
		switch {
		case asked && !valid:
			return ErrNotRefundable
		case valid && (asked || len(wanted) == 0):
			g.ids, g.seats, g.amount = append(g.ids, id), append(g.seats, seat), g.amount+amount
		case valid:
			left++
		}
		return nil
	})
	switch {
	case errors.Is(err, ErrNotRefundable):
		return g, ErrNotRefundable
	case err != nil:
		return g, fmt.Errorf("payment: tickets: %w", err)
	case len(want) > 0:
		return g, ErrUnknownTicket
	case len(g.ids) == 0:
		return g, ErrNotRefundable
	}
	slices.Sort(g.seats)
	g.whole = left == 0
	return g, nil
}

// writeDown puts a refund into the audit log and the outbox.
func writeDown(ctx context.Context, tx pgx.Tx, actor string, b bookingRow, g giving, reason string) error {
	detail, err := json.Marshal(map[string]any{
		"showtimeId": b.showtimeID, "tickets": g.ids, "seats": g.seats, "amount": g.amount, "currency": b.currency, "reason": reason,
	})
	if err != nil {
		return fmt.Errorf("payment: audit: %w", err)
	}
	if _, err := tx.Exec(ctx, sqlAudit, actor, "booking.refund", b.id.String(), detail); err != nil {
		return fmt.Errorf("payment: audit: %w", err)
	}
	e := b.event(outbox.BookingRefunded, reason)
	e.Seats = g.seats
	_, err = outbox.Write(ctx, tx, e)
	return err
}
