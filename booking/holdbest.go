package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const sqlHoldByKey = `SELECT ` + holdFields + `, request_hash FROM hold
	 WHERE showtime_id = $1 AND customer_id = $2 AND idempotency_key = $3`

// holdBest chooses in memory and takes like any other request; when it loses the
// seats to somebody it chooses again, until the deadline.
func (o *Office) holdBest(ctx context.Context, s Session, st *Showtime, l *Layout, r HoldRequest, deadline time.Time) (Hold, bool, error) {
	n := r.Best.Count
	switch {
	case r.IdempotencyKey == "":
		return Hold{}, false, ErrKeyRequired
	case len(r.Seats) > 0 || n < 1:
		return Hold{}, false, ErrSeatsRequired
	case n > st.MaxPerHold:
		return Hold{}, false, &TooManySeatsError{Max: st.MaxPerHold}
	case r.Best.Section != "" && !l.hasSection(r.Best.Section):
		return Hold{}, false, &SeatsError{Reason: ErrUnknownSeat, Seats: []string{r.Best.Section}}
	}
	body := "best:" + strconv.Itoa(n) + ":" + r.Best.Section
	lost := map[string]bool{}
	lane := o.laneOf(st.ScopeID)
	o.choosing.Add(1)
	defer o.choosing.Add(-1)
	for time.Now().Before(deadline) {
		codes, err := o.chooseNow(ctx, st, l, r.Best, lost)
		if err != nil {
			return o.orOldHold(ctx, s, r, body, err)
		}
		take, err := newTake(s, st, l, codes, r.IdempotencyKey, body)
		if err != nil {
			return Hold{}, false, err
		}
		// A part of the time only: where a stranger keeps the rows, other seats may do.
		turn := time.Now().Add(o.opts.HoldDeadline / 2)
		if deadline.Before(turn) {
			turn = deadline
		}
		res, err := lane.do(ctx, take, turn)
		if errors.Is(err, ErrBusy) && time.Now().Before(deadline) && ctx.Err() == nil && !lane.full() {
			res = takeResult{outcome: "taken", lost: codes}
			err = nil
		}
		if err != nil {
			return Hold{}, false, err
		}
		switch res.outcome {
		case "gone": // the layout is another one by now; its seats are the next call's
			o.catalog.forget(st.ID)
		case "taken":
		default:
			return res.answer(st.MaxPerCustomer)
		}
		for _, c := range slices.Concat(res.lost, res.yours) {
			lost[c] = true
		}
	}
	return Hold{}, false, ErrBusy
}

// chooseNow picks seats from memory; when memory has none that fit, from the
// database, which alone may say that nothing is left. Seats in lost were lost by
// this call and are passed over.
func (o *Office) chooseNow(ctx context.Context, st *Showtime, l *Layout, b *Best, lost map[string]bool) ([]string, error) {
	w, err := o.maps.fresh(ctx, st.ID)
	if err != nil {
		return nil, err
	}
	spread := spreadFor(o.choosing.Load())
	if codes := w.choose(st, l, b, spread, lost); codes != nil {
		return codes, nil
	}
	states, err := o.statesNow(ctx, st.ID)
	if err != nil {
		return nil, err
	}
	c := chooseBest(l, func(i int) bool { return states[l.Seats[i].Code] == seatFree }, b.Count, b.Section, st.sectionCost, spread, drawAtRandom)
	if c.seats != nil {
		return l.codes(c.seats), nil
	}
	// Sold out is said of the whole showtime: a section that is has others beside it.
	booked, held := 0, 0
	for _, seat := range l.Seats {
		switch state := states[seat.Code]; {
		case state == seatBooked:
			booked++
		case state == seatHeld && (b.Section == "" || seat.Section == b.Section):
			held++
		}
	}
	if booked == len(l.Seats) {
		return nil, ErrSoldOut
	}
	return nil, &NoneFreeError{Section: b.Section, Left: c.left, Largest: c.largest, Held: held}
}

// choose picks among what memory calls free; nil when nothing fits or memory has
// another layout than l.
func (w *watch) choose(st *Showtime, l *Layout, b *Best, spread int, lost map[string]bool) []string {
	free := w.free(l)
	if free == nil {
		return nil
	}
	for s := range lost {
		free[l.index[s]] = false
	}
	c := chooseBest(l, func(i int) bool { return free[i] }, b.Count, b.Section, st.sectionCost, spread, drawAtRandom)
	if c.seats == nil {
		return nil
	}
	return l.codes(c.seats)
}

// free copies what is free now, so that the choice is made outside the lock.
func (w *watch) free(l *Layout) []bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.layout != l {
		return nil
	}
	now := time.Now()
	free := make([]bool, len(w.states))
	for i := range free {
		free[i] = w.now(i, now) == seatFree
	}
	return free
}

// orOldHold prefers the hold this key has made before to the reason why a new
// one cannot be made; ErrKeyReused when it was made for another request.
func (o *Office) orOldHold(ctx context.Context, s Session, r HoldRequest, body string, why error) (Hold, bool, error) {
	var hash string
	h, err := scanHold(o.pool.QueryRow(ctx, sqlHoldByKey, r.ShowtimeID, s.Customer, r.IdempotencyKey), &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return Hold{}, false, why
	}
	if err != nil {
		return Hold{}, false, fmt.Errorf("booking: read hold: %w", err)
	}
	if hash != requestHash(body) {
		return Hold{}, false, ErrKeyReused
	}
	return h, true, nil
}

// statesNow reads what is not free from the database.
func (o *Office) statesNow(ctx context.Context, showtimeID string) (map[string]seatState, error) {
	rows, _ := o.pool.Query(ctx, sqlSeatsNow, showtimeID)
	states := map[string]seatState{}
	var code, status string
	var left float64
	if _, err := pgx.ForEachRow(rows, []any{&code, &status, &left}, func() error {
		states[code] = parseState(status)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("booking: read seats: %w", err)
	}
	return states, nil
}

func (l *Layout) codes(seats []int) []string {
	codes := make([]string, len(seats))
	for i, s := range seats {
		codes[i] = l.Seats[s].Code
	}
	slices.Sort(codes)
	return codes
}

func (l *Layout) hasSection(section string) bool {
	return slices.ContainsFunc(l.Seats, func(s Seat) bool { return s.Section == section })
}
