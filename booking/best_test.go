package booking

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"usher/booking/bookingtest"
)

// hall draws a layout: one string a row, 'o' free, 'x' taken, 'w' an accessible
// free seat, ' ' an aisle.
func hall(rows ...string) (*Layout, func(int) bool) {
	l := &Layout{index: map[string]int{}}
	var open []bool
	for r, row := range rows {
		for p, c := range row {
			if c == ' ' {
				continue
			}
			code := fmt.Sprintf("%c%d", 'A'+r, p+1)
			l.index[code] = len(l.Seats)
			l.Seats = append(l.Seats, Seat{Code: code, Section: "S", RowIndex: r + 1, Position: p + 1, Accessible: c == 'w'})
			open = append(open, c != 'x')
		}
	}
	return l, func(i int) bool { return open[i] }
}

func TestChooseBest(t *testing.T) {
	t.Parallel()
	first := func(int) int { return 0 }
	const alone = 1
	for name, c := range map[string]struct {
		rows          []string
		count         int
		want          string // the first seat, "" when nothing fits
		left, largest int
	}{
		"the middle of the front":        {[]string{"ooooooo", "ooooooo"}, 3, "A3", 14, 7},
		"never across an aisle":          {[]string{"o oo oo", "ooo"}, 3, "B1", 8, 3},
		"no row holds them together":     {[]string{"oo oo", "oo"}, 3, "", 6, 2},
		"no single seat left behind":     {[]string{"xooox", "xooxx"}, 2, "B2", 5, 3},
		"but rather that than nothing":   {[]string{"xooox"}, 2, "A2", 3, 3},
		"accessible seats last":          {[]string{"wwoo", "oooo"}, 3, "B1", 8, 4},
		"accessible rather than nothing": {[]string{"wwo"}, 3, "A1", 3, 3},
		"taken seats are no neighbours":  {[]string{"oxoxo"}, 2, "", 3, 1},
		"B18: a row of twelve is one row, not text": {
			[]string{"xxxxxxxxoooo"}, 4, "A9", 4, 4,
		},
	} {
		l, free := hall(c.rows...)
		got := chooseBest(l, free, c.count, "", nil, alone, first)
		code := ""
		if got.seats != nil {
			code = l.Seats[got.seats[0]].Code
			for i := 1; i < len(got.seats); i++ {
				if a, b := l.Seats[got.seats[i-1]], l.Seats[got.seats[i]]; a.RowIndex != b.RowIndex || a.Position+1 != b.Position {
					t.Errorf("%s: %s and %s are not neighbours", name, a.Code, b.Code)
				}
			}
		}
		if code != c.want || got.left != c.left || got.largest != c.largest {
			t.Errorf("%s: got %q left %d largest %d, want %q %d %d", name, code, got.left, got.largest, c.want, c.left, c.largest)
		}
	}
}

func TestChooseBestTakesStandingPlacesByCount(t *testing.T) {
	t.Parallel()
	l := &Layout{}
	for i := range 10 {
		l.Seats = append(l.Seats, Seat{Code: fmt.Sprint(i), Section: "GA", RowIndex: 1, Position: i + 1, Standing: true})
	}
	got := chooseBest(l, func(i int) bool { return i%2 == 0 }, 4, "GA", nil, 8, func(int) int { return 0 })
	if len(got.seats) != 4 || got.left != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestB6_ManyAskForTheBestAtOnce(t *testing.T) {
	t.Parallel()
	url := bookingtest.URL(t)
	pool := bookingtest.PoolOn(t, url)
	bookingtest.Seed(t, pool, bookingtest.Hall{Rows: 80, PerRow: 100})
	patient := func(o *Options) { o.HoldDeadline = time.Minute } // the machine may be busy; one call must do
	offices := []*Office{office(t, pool, patient), office(t, bookingtest.PoolOn(t, url), patient)}
	fans := fansOf(t, pool, 160)
	errs := race(160, func(i int) error {
		h, _, err := offices[i%2].Hold(context.Background(), fans[i], HoldRequest{
			ShowtimeID: "show", Best: &Best{Count: 2}, IdempotencyKey: "k",
		})
		if err != nil {
			return err
		}
		return neighbours(h.Seats)
	})
	if n := count(errs, nil); n < 159 {
		t.Errorf("%d of 160 succeeded: %v", n, errs)
	}
	sane(t, pool)
}

func neighbours(seats []string) error {
	var row [2]byte
	var n [2]int
	for i, s := range seats {
		var label string
		for j, c := range s {
			if c >= '0' && c <= '9' {
				label = s[:j]
				if _, err := fmt.Sscan(s[j:], &n[i]); err != nil {
					return err
				}
				break
			}
		}
		row[i] = label[len(label)-1]
	}
	if d := n[0] - n[1]; row[0] != row[1] || d != 1 && d != -1 {
		return fmt.Errorf("%v are not neighbours", seats)
	}
	return nil
}

// B4: a standing area fills to the last place and not beyond.
func TestB4_AStandingAreaOfAHundredIsSoldToTheLastPlace(t *testing.T) {
	t.Parallel()
	url := bookingtest.URL(t)
	pool := bookingtest.PoolOn(t, url)
	bookingtest.Seed(t, pool, bookingtest.Hall{Rows: 1, PerRow: 1, Standing: 100})
	slow := func(o *Options) { o.HoldDeadline = time.Minute } // under -race; the count is what matters here
	offices := []*Office{office(t, pool, slow), office(t, bookingtest.PoolOn(t, url), slow)}
	fans := fansOf(t, pool, 500)
	errs := race(500, func(i int) error {
		_, _, err := offices[i%2].Hold(context.Background(), fans[i], HoldRequest{
			ShowtimeID: "show", Best: &Best{Count: 1, Section: "GA"}, IdempotencyKey: "k",
		})
		return err
	})
	if count(errs, nil) != 100 || count(errs, ErrNoneFree) != 400 {
		t.Errorf("%d took a place, %d were told none is free", count(errs, nil), count(errs, ErrNoneFree))
	}
	sane(t, pool)
}

func TestSoldOutIsSaidOnlyWhenAllIsSold(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	left := bookingtest.Leave(t, pool, "show", 2)
	of, ann, bob := office(t, pool), fan(t, pool, "ann"), fan(t, pool, "bob")
	ask := func() error {
		_, _, err := of.Hold(ctx, bob, HoldRequest{ShowtimeID: "show", Best: &Best{Count: 1}, IdempotencyKey: "k"})
		return err
	}
	h, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: left})
	if err != nil {
		t.Fatal(err)
	}
	var none *NoneFreeError
	if err := ask(); !errors.As(err, &none) || none.Held != 2 || none.Left != 0 {
		t.Errorf("all held: %v", err)
	}
	if err := of.ReleaseHold(ctx, ann, h.ID); err != nil {
		t.Fatal(err)
	}
	bookingtest.Leave(t, pool, "show", 0)
	if err := ask(); !errors.Is(err, ErrSoldOut) {
		t.Errorf("all sold: %v", err)
	}
}
