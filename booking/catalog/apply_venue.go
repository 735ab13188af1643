package catalog

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

func (a *applier) venue(v Venue) error {
	var was Venue
	err := a.tx.QueryRow(a.ctx, sqlLockVenue, v.ID).
		Scan(&was.Name, &was.City, &was.Timezone)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		a.note("created", "venue", v.ID, "%s", v.Name)
		_, err = a.tx.Exec(a.ctx, sqlNewVenue,
			v.ID, v.Name, v.City, v.Timezone)
	case err == nil:
		d := differences("name", was.Name, v.Name, "city", was.City, v.City, "timezone", was.Timezone, v.Timezone)
		if d == "" {
			a.summary.Unchanged++
			break
		}
		a.note("changed", "venue", v.ID, "%s", d)
		_, err = a.tx.Exec(a.ctx, sqlChangeVenue,
			v.ID, v.Name, v.City, v.Timezone)
	}
	if err != nil {
		return err
	}
	return a.layout(v)
}

// layout writes the venue's seats unless this very layout exists. It is never
// changed, so the id alone tells.
func (a *applier) layout(v Venue) error {
	tag, err := a.tx.Exec(a.ctx, sqlNewLayout, v.LayoutID, v.ID, v.Shape)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	a.note("created", "layout", v.LayoutID, "%d seats", len(v.Seats))
	_, err = a.tx.CopyFrom(a.ctx, pgx.Identifier{"layout_seat"},
		[]string{"layout_id", "seat_code", "section", "row_label", "seat_label", "row_index", "position",
			"x", "y", "accessible", "standing", "price_class"},
		pgx.CopyFromSlice(len(v.Seats), func(i int) ([]any, error) {
			s := v.Seats[i]
			return []any{v.LayoutID, s.Code, s.Section, s.Row, s.Label, int32(s.RowIndex), int32(s.Position),
				float32(s.X), float32(s.Y), s.Accessible, s.Standing, s.PriceClass}, nil
		}))
	return err
}
