package payment

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	// From the booking's own seats outwards: a seat whose layout was replaced while
	// the fan was paying still gets its ticket.
	sqlTicketSeats = `
		SELECT w.seat_code, COALESCE(ls.price_class, ''), COALESCE(pc.amount, 0)
		  FROM unnest($2::text[]) AS w(seat_code)
		  JOIN showtime st ON st.showtime_id = $1
		  LEFT JOIN layout_seat ls ON ls.layout_id = st.layout_id AND ls.seat_code = w.seat_code
		  LEFT JOIN price_class pc ON pc.event_id = st.event_id AND pc.code = ls.price_class
		 ORDER BY w.seat_code`
	sqlInsertTickets = `
		INSERT INTO ticket (showtime_id, ticket_id, booking_id, seat_code, code, price_class, amount)
		SELECT $1, t.id::uuid, $2, t.seat, t.code, t.class, t.amount
		  FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) AS t(id, seat, code, class, amount)`
)

// issueTickets writes one ticket a seat.
func issueTickets(ctx context.Context, tx pgx.Tx, b bookingRow) error {
	rows, err := tx.Query(ctx, sqlTicketSeats, b.showtimeID, b.seats)
	if err != nil {
		return fmt.Errorf("payment: ticket seats: %w", err)
	}
	var ids, seats, codes, classes []string
	var prices []int64
	var seat, class string
	var price int64
	_, err = pgx.ForEachRow(rows, []any{&seat, &class, &price}, func() error {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		ids, seats, classes = append(ids, id.String()), append(seats, seat), append(classes, class)
		codes, prices = append(codes, ticketCode()), append(prices, price)
		return nil
	})
	if err != nil {
		return fmt.Errorf("payment: ticket seats: %w", err)
	}
	_, err = tx.Exec(ctx, sqlInsertTickets, b.showtimeID, b.id, ids, seats, codes, classes, share(b.amount, prices))
	if err != nil {
		return fmt.Errorf("payment: tickets: %w", err)
	}
	return nil
}

// ticketCode is 160 random bits in letters and digits nobody mixes up much: who
// has not seen a ticket cannot make its code.
func ticketCode() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails: it would end the program
	return base32.StdEncoding.EncodeToString(b[:])
}

// share splits total by weight into whole units that add up to it exactly, so
// that giving back every ticket gives back what was paid. Usually the weights are
// the prices and add up already; they do not when a price was changed while the
// fan was paying, and what was agreed at the hold counts.
func share(total int64, weights []int64) []int64 {
	var sum int64
	for _, w := range weights {
		sum += w
	}
	out := make([]int64, len(weights))
	left := total
	for i, w := range weights {
		switch sum {
		case total:
			out[i] = w
		case 0:
			out[i] = total / int64(len(weights))
		default:
			out[i] = int64(float64(total) * float64(w) / float64(sum))
		}
		left -= out[i]
	}
	// Rounding leaves less than one unit a seat; hand it out from the front.
	for i := 0; left != 0 && len(out) > 0; i = (i + 1) % len(out) {
		step := int64(1)
		if left < 0 {
			step = -1
			if out[i] == 0 {
				continue
			}
		}
		out[i] += step
		left -= step
	}
	return out
}
