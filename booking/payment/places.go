package payment

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The rows come in the order in which tickets are issued, so that the shares of
// a booking without tickets are those its tickets will have; rank is the hall's.
// A booking has at most one ticket a seat.
const sqlReadPlaces = `
	SELECT w.seat_code, COALESCE(ls.section, ''), COALESCE(ls.row_label, ''), COALESCE(ls.seat_label, w.seat_code),
	       COALESCE(ls.standing, false), COALESCE(pc.name, k.price_class, ls.price_class, ''),
	       COALESCE(k.amount, 0), k.seat_code IS NOT NULL, COALESCE(pc.amount, 0),
	       row_number() OVER (ORDER BY ls.section, ls.row_index, ls.position, w.seat_code)
	  FROM unnest($3::text[]) AS w(seat_code)
	  JOIN showtime st ON st.showtime_id = $1
	  LEFT JOIN ticket k ON k.showtime_id = $1 AND k.booking_id = $2 AND k.seat_code = w.seat_code
	  LEFT JOIN layout_seat ls ON ls.layout_id = st.layout_id AND ls.seat_code = w.seat_code
	  LEFT JOIN price_class pc ON pc.event_id = st.event_id AND pc.code = COALESCE(k.price_class, ls.price_class)
	 ORDER BY w.seat_code`

// readPlaces says where a booking's seats are. A seat with a ticket has the
// ticket's amount; before there are any, the amounts are the shares of what was
// agreed at the hold.
func (d *Desk) readPlaces(ctx context.Context, b Booking, id uuid.UUID) ([]Place, error) {
	rows, err := d.pool.Query(ctx, sqlReadPlaces, b.ShowtimeID, id, b.Seats)
	if err != nil {
		return nil, fmt.Errorf("payment: read places: %w", err)
	}
	type ranked struct {
		Place
		rank int64
	}
	var found []ranked
	var prices []int64
	ticketed := false
	var p ranked
	var has bool
	var price int64
	_, err = pgx.ForEachRow(rows, []any{
		&p.SeatCode, &p.Section, &p.Row, &p.Seat, &p.Standing, &p.PriceClass, &p.Amount, &has, &price, &p.rank,
	}, func() error {
		found, prices, ticketed = append(found, p), append(prices, price), ticketed || has
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("payment: read places: %w", err)
	}
	if !ticketed {
		for i, amount := range share(b.Amount, prices) {
			found[i].Amount = amount
		}
	}
	slices.SortFunc(found, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	out := make([]Place, len(found))
	for i, f := range found {
		out[i] = f.Place
	}
	return out, nil
}
