package booking

import (
	"context"
	"errors"
	"slices"
	"testing"

	"usher/booking/bookingtest"
)

func TestASectionThatIsSoldIsNotTheWholeHouse(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{Standing: 4})
	if _, err := pool.Exec(ctx, `UPDATE show_seat SET status = 'BOOKED', hold_id = gen_random_uuid(), customer_id = 'c',
		booking_id = gen_random_uuid() WHERE seat_code LIKE 'GA-%'`); err != nil {
		t.Fatal(err)
	}
	of, ann := office(t, pool), fan(t, pool, "ann")
	_, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Best: &Best{Count: 1, Section: "GA"}, IdempotencyKey: "k"})
	var none *NoneFreeError
	if !errors.As(err, &none) || none.Left != 0 || none.Held != 0 || none.Section != "GA" {
		t.Errorf("got %v", err)
	}
}

func TestAFansOwnSeatsAreNotLost(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of, ann, bob := office(t, pool), fan(t, pool, "ann"), fan(t, pool, "bob")
	ask := func(s Session, seats ...string) (Hold, *SeatsError) {
		h, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: seats})
		var e *SeatsError
		if err != nil && (!errors.As(err, &e) || !errors.Is(err, ErrSeatsUnavailable)) {
			t.Fatal(err)
		}
		return h, e
	}
	mine, _ := ask(ann, "H1")
	if _, e := ask(bob, "H3"); e != nil {
		t.Fatal(e)
	}
	if _, e := ask(ann, "H1", "H2"); e == nil || len(e.Seats) != 0 || !slices.Equal(e.Yours, []string{"H1"}) || e.HoldID != mine.ID {
		t.Errorf("only my own are in the way: %+v", e)
	}
	if _, e := ask(ann, "H1", "H2", "H3"); e == nil || !slices.Equal(e.Seats, []string{"H3"}) || !slices.Equal(e.Yours, []string{"H1"}) {
		t.Errorf("mine and bob's: %+v", e)
	}
	if _, e := ask(bob, "H1"); e == nil || !slices.Equal(e.Seats, []string{"H1"}) || len(e.Yours) != 0 || e.HoldID != "" {
		t.Errorf("a stranger was told of ann's hold: %+v", e)
	}
}

// Nothing is free, so no step of a lane compares the bodies.
func TestAKeyIsReusedEvenWhenNothingIsFree(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	bookingtest.Leave(t, pool, "show", 2)
	of, ann := office(t, pool), fan(t, pool, "ann")
	ask := func(n int) (Hold, error) {
		h, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Best: &Best{Count: n}, IdempotencyKey: "k"})
		return h, err
	}
	first, err := ask(2)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ask(2); err != nil || again.ID != first.ID {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if _, err := ask(1); !errors.Is(err, ErrKeyReused) {
		t.Errorf("another body: %v", err)
	}
}

// The layout in memory is up to MapEvery old: a seat may be gone from the sale.
func TestASeatThatIsGoneIsUnknownAndNotBusy(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of, ann := office(t, pool), fan(t, pool, "ann")
	if _, err := of.SeatMap(ctx, "show"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `DELETE FROM show_seat WHERE seat_code = 'A2'`); err != nil {
		t.Fatal(err)
	}
	_, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A1", "A2"}})
	var e *SeatsError
	if !errors.As(err, &e) || !errors.Is(err, ErrUnknownSeat) || !slices.Equal(e.Seats, []string{"A2"}) {
		t.Errorf("got %v", err)
	}
	if h, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Best: &Best{Count: 2}, IdempotencyKey: "k"}); err != nil || slices.Contains(h.Seats, "A2") {
		t.Errorf("best: %+v, %v", h, err)
	}
	sane(t, pool)
}

// The best of a stadium is not the front row of its cheapest stand.
func TestTheBestAnywhereIsInADearSection(t *testing.T) {
	t.Parallel()
	l, free := hall("oooo", "oooo", "oooo")
	for i := range l.Seats {
		l.Seats[i].Section, l.Seats[i].PriceClass = "near", "dear"
	}
	for p := range 4 {
		l.Seats = append(l.Seats, Seat{Section: "roof", PriceClass: "cheap", RowIndex: 1, Position: p + 1})
	}
	all := func(i int) bool { return i >= len(l.Seats)-4 || free(i) }
	costs := sectionCosts(&Showtime{PriceClasses: []PriceClass{{Code: "dear", Amount: 9}, {Code: "same", Amount: 9}, {Code: "cheap", Amount: 1}}}, l)
	for _, c := range []struct {
		free          func(int) bool
		section, want string
	}{
		{all, "", "near"},
		{func(i int) bool { return all(i) && i >= 8 }, "", "near"}, // its third row is still the better
		{all, "roof", "roof"},
		{func(i int) bool { return i >= 12 }, "", "roof"},
	} {
		for range 20 { // with all windows kept: the roof is no near equal either
			got := chooseBest(l, c.free, 2, c.section, costs, 100, drawAtRandom)
			if len(got.seats) != 2 || l.Seats[got.seats[0]].Section != c.want {
				t.Fatalf("section %q: got %+v, want it in %s", c.section, got, c.want)
			}
		}
	}
}
