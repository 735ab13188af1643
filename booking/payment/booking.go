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

// The states of a booking.
const (
	BookingPending   = "PENDING"
	BookingConfirmed = "CONFIRMED"
	BookingRefunded  = "REFUNDED"
	BookingFailed    = "FAILED"
)

// The states of a ticket.
const (
	TicketValid    = "VALID"
	TicketRefunded = "REFUNDED"
)

// The states of a payment.
const (
	PaymentPending   = "PENDING"
	PaymentCaptured  = "CAPTURED"
	PaymentFailed    = "FAILED"
	PaymentRefundDue = "REFUND_DUE"
	PaymentRefunded  = "REFUNDED"
)

// Booking is what a paid hold becomes, with what a customer may read of it.
type Booking struct {
	ID             string
	ShowtimeID     string
	HoldID         string
	State          string // one of the Booking… states
	Reason         string // why FAILED or REFUNDED; "" otherwise
	Seats          []string
	Amount         int64 // minor units
	RefundedAmount int64
	Currency       string
	CreatedAt      time.Time
	ConfirmedAt    time.Time // zero until confirmed
	HoldExpiresAt  time.Time // until when a PENDING booking can be paid for
	Payment        Payment   // the attempt that counts: the one that paid, else the latest
	Showtime       ShowtimeInfo
	Places         []Place  // one a seat, in the hall's order, whatever the state
	Tickets        []Ticket // in the seats' order; empty until confirmed
}

// Payment is one attempt to pay.
type Payment struct {
	ID        string
	State     string // one of the Payment… states
	URL       string // while it can still be paid, else ""
	ExpiresAt time.Time
	Reason    string // why it failed or is given back
}

// ShowtimeInfo is what a ticket says about the performance.
type ShowtimeInfo struct {
	Title, Subtitle, Venue, City, Timezone, Room string
	StartsAt                                     time.Time
}

// Place is one seat of a booking as people say it.
type Place struct {
	SeatCode   string
	Section    string
	Row        string
	Seat       string // as printed
	Standing   bool
	PriceClass string // its name
	Amount     int64  // minor units; all of them add up to the booking's
}

// Ticket is the proof of one sold seat.
type Ticket struct {
	ID         string
	SeatCode   string
	Section    string
	Row        string
	Seat       string // as printed
	Standing   bool
	Accessible bool
	PriceClass string // its name
	Amount     int64
	State      string // TicketValid or TicketRefunded
	Code       string // what the QR code says
}

const (
	sqlReadBooking = `
		SELECT b.showtime_id, b.hold_id::text, b.state, b.reason, b.seats, b.amount, b.refunded_amount, b.currency,
		       b.created_at, COALESCE(b.confirmed_at, 'epoch'), h.expires_at,
		       e.title, e.subtitle, v.name, v.city, v.timezone, b.room_id, st.starts_at,
		       COALESCE(p.payment_id::text, ''), COALESCE(p.state, ''), COALESCE(p.reason, ''),
		       COALESCE(p.expires_at, 'epoch'),
		       CASE WHEN p.state = 'PENDING' AND p.expires_at > clock_timestamp() THEN p.payment_url ELSE '' END
		  FROM booking b
		  JOIN hold h ON h.showtime_id = b.showtime_id AND h.hold_id = b.hold_id
		  JOIN showtime st ON st.showtime_id = b.showtime_id
		  JOIN event e ON e.event_id = st.event_id
		  JOIN venue v ON v.venue_id = e.venue_id
		  LEFT JOIN LATERAL (SELECT * FROM payment q
		       WHERE q.showtime_id = b.showtime_id AND q.booking_id = b.booking_id
		       ORDER BY q.state = 'CAPTURED' DESC, b.state <> 'PENDING' AND q.captured_amount > 0 DESC, q.attempt DESC
		       LIMIT 1) p ON true
		 WHERE b.booking_id = $1 AND ($2 = '' OR b.customer_id = $2)`
	sqlReadTickets = `
		SELECT k.ticket_id::text, k.seat_code, COALESCE(ls.section, ''), COALESCE(ls.row_label, ''),
		       COALESCE(ls.seat_label, k.seat_code), COALESCE(ls.standing, false), COALESCE(ls.accessible, false),
		       COALESCE(pc.name, k.price_class), k.amount, k.state, k.code
		  FROM ticket k
		  JOIN showtime st ON st.showtime_id = k.showtime_id
		  LEFT JOIN layout_seat ls ON ls.layout_id = st.layout_id AND ls.seat_code = k.seat_code
		  LEFT JOIN price_class pc ON pc.event_id = st.event_id AND pc.code = k.price_class
		 WHERE k.showtime_id = $1 AND k.booking_id = $2
		 ORDER BY ls.section, ls.row_index, ls.position, k.seat_code`
	sqlReadTicket = `
		SELECT k.showtime_id, k.seat_code, k.code, k.state = 'VALID'
		  FROM booking b JOIN ticket k ON k.showtime_id = b.showtime_id AND k.booking_id = b.booking_id
		 WHERE b.booking_id = $1 AND b.customer_id = $2 AND k.ticket_id = $3`
)

// Booking reads a booking of the caller, whose session may have ended;
// ErrUnknownBooking also for other people's.
func (d *Desk) Booking(ctx context.Context, s booking.Session, id string) (Booking, error) {
	bid, err := uuid.Parse(id)
	if err != nil || s.Customer == "" {
		return Booking{}, ErrUnknownBooking
	}
	return d.readBooking(ctx, bid, s.Customer)
}

// readBooking reads a booking; customer "" reads anybody's.
func (d *Desk) readBooking(ctx context.Context, id uuid.UUID, customer string) (Booking, error) {
	b := Booking{ID: id.String()}
	p, st := &b.Payment, &b.Showtime
	err := d.pool.QueryRow(ctx, sqlReadBooking, id, customer).Scan(
		&b.ShowtimeID, &b.HoldID, &b.State, &b.Reason, &b.Seats, &b.Amount, &b.RefundedAmount, &b.Currency,
		&b.CreatedAt, &b.ConfirmedAt, &b.HoldExpiresAt,
		&st.Title, &st.Subtitle, &st.Venue, &st.City, &st.Timezone, &st.Room, &st.StartsAt,
		&p.ID, &p.State, &p.Reason, &p.ExpiresAt, &p.URL)
	if errors.Is(err, pgx.ErrNoRows) {
		return Booking{}, ErrUnknownBooking
	}
	if err != nil {
		return Booking{}, fmt.Errorf("payment: read booking: %w", err)
	}
	if b.ConfirmedAt.Unix() == 0 {
		b.ConfirmedAt = time.Time{}
	}
	rows, err := d.pool.Query(ctx, sqlReadTickets, b.ShowtimeID, id)
	if err != nil {
		return Booking{}, fmt.Errorf("payment: read tickets: %w", err)
	}
	b.Tickets, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Ticket])
	if err != nil {
		return Booking{}, fmt.Errorf("payment: read tickets: %w", err)
	}
	b.Places, err = d.readPlaces(ctx, b, id)
	return b, err
}

// ValidTicket is one of the caller's tickets, with its id, seat and code alone, and the
// performance; ErrUnknownTicket when it is not theirs or has been refunded.
func (d *Desk) ValidTicket(ctx context.Context, s booking.Session, bookingID, ticketID string) (t Ticket, showtimeID string, err error) {
	bid, err1 := uuid.Parse(bookingID)
	tid, err2 := uuid.Parse(ticketID)
	if err1 != nil || err2 != nil || s.Customer == "" {
		return Ticket{}, "", ErrUnknownTicket
	}
	t.ID = tid.String()
	var valid bool
	err = d.pool.QueryRow(ctx, sqlReadTicket, bid, s.Customer, tid).Scan(&showtimeID, &t.SeatCode, &t.Code, &valid)
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && !valid) {
		return Ticket{}, "", ErrUnknownTicket
	}
	if err != nil {
		return Ticket{}, "", fmt.Errorf("payment: ticket: %w", err)
	}
	return t, showtimeID, nil
}
