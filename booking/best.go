package booking

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Weights of the chooser, in rows: a window one row further back costs one.
const (
	offCentre      = 0.25 // a seat away from the middle of its row
	orphan         = 100  // a single seat left beside the window
	accessibleSeat = 400  // an accessible seat given to who did not ask for one
	cheaperClass   = 60   // a section a price class further down, when any section may be; more than nearEqual
	nearEqual      = 50   // windows no worse than this are equals, as long as there are few
	calmSpread     = 8    // among how many near equals the choice is drawn when nobody else asks
	crowdSpread    = 64   // and how many more for each who asks at the same moment
	mostSpread     = 8192
)

// choice is what the chooser found: places in the layout, or why not.
type choice struct {
	seats   []int // nil: nothing fits
	left    int   // free seats in the section
	largest int   // most of them beside each other
}

// chooseBest picks count free seats beside each other: the same physical row,
// consecutive positions (a gap is an aisle), near the stage and the middle, not
// leaving a single seat if it can be helped. Among near equals it draws, so that
// fans who ask at the same moment do not all want the same seats. Standing
// places need not be neighbours. It is pure; free says what may be taken, spread
// among how many near equals to draw.
//
// sectionCost is what a section costs beside its rows; nil: all are alike. It
// never changes a choice within one section.
func chooseBest(l *Layout, free func(i int) bool, count int, section string, sectionCost map[string]float64, spread int, draw func(n int) int) choice {
	var c choice
	found := shortlist{keep: spread}
	for start := 0; start < len(l.Seats); {
		end := start + 1
		for end < len(l.Seats) && sameRow(&l.Seats[start], &l.Seats[end]) {
			end++
		}
		if section == "" || l.Seats[start].Section == section {
			found.base = sectionCost[l.Seats[start].Section]
			c.row(l, free, start, end, count, &found)
		}
		start = end
	}
	if len(found.windows) == 0 {
		return c
	}
	equals := found.nearEquals()
	drawn := equals[draw(len(equals))]
	if c.seats = drawn.places; c.seats == nil {
		c.seats = span(drawn.at, count)
	}
	return c
}

// sectionCosts ranks the sections of a layout by what the showtime asks for their
// seats: a venue's prices say which of its sections are the better ones, while rows
// are counted within a section and the distance from the stage says nothing about
// the view. nil when all are one section.
func sectionCosts(st *Showtime, l *Layout) map[string]float64 {
	rank := make(map[string]float64, len(st.PriceClasses))
	step := -1.0
	for i, p := range st.PriceClasses { // dearest first; equal prices are one step
		if i == 0 || p.Amount != st.PriceClasses[i-1].Amount {
			step++
		}
		rank[p.Code] = step
	}
	seats, costs := map[string]float64{}, map[string]float64{}
	for i := range l.Seats {
		s := &l.Seats[i]
		seats[s.Section]++
		costs[s.Section] += rank[s.PriceClass]
	}
	if len(seats) < 2 {
		return nil
	}
	for section, n := range seats {
		costs[section] *= cheaperClass / n
	}
	return costs
}

type window struct {
	at     int   // first seat of a run
	places []int // instead of a run, in a standing area
	cost   float64
}

// shortlist keeps the cheapest windows; a stadium has twenty thousand.
type shortlist struct {
	keep    int
	base    float64 // added to the cost of each
	windows []window
}

func (s *shortlist) add(w window) {
	w.cost += s.base
	if s.windows = append(s.windows, w); len(s.windows) >= 4*s.keep+64 {
		s.trim()
	}
}

// nearEquals are the windows to draw from. They are sorted only when there are
// more than may be kept: in a crowd all of them may, and a sort is what costs.
func (s *shortlist) nearEquals() []window {
	if len(s.windows) > s.keep {
		s.trim()
	}
	best := slices.MinFunc(s.windows, func(a, b window) int { return cmp.Compare(a.cost, b.cost) }).cost
	return slices.DeleteFunc(s.windows, func(w window) bool { return w.cost > best+nearEqual })
}

func (s *shortlist) trim() {
	slices.SortStableFunc(s.windows, func(a, b window) int { return cmp.Compare(a.cost, b.cost) })
	s.windows = s.windows[:min(len(s.windows), s.keep)]
}

// sameRow: one physical row, or one standing area.
func sameRow(a, b *Seat) bool {
	return a.Section == b.Section && a.Standing == b.Standing && (a.Standing || a.RowIndex == b.RowIndex)
}

// row adds the windows of seats [start, end), which are one row or one standing area.
func (c *choice) row(l *Layout, free func(int) bool, start, end, count int, found *shortlist) {
	if l.Seats[start].Standing {
		var open []int
		for i := start; i < end; i++ {
			if free(i) {
				open = append(open, i)
			}
		}
		c.left += len(open)
		c.largest = max(c.largest, len(open))
		for at := 0; at+count <= len(open); at += count {
			found.add(window{places: open[at : at+count], cost: float64(l.Seats[open[at]].RowIndex)})
		}
		return
	}
	middle := float64(l.Seats[start].Position+l.Seats[end-1].Position) / 2
	for at := start; at < end; {
		if !free(at) {
			at++
			continue
		}
		stop := at + 1
		for stop < end && free(stop) && l.Seats[stop].Position == l.Seats[stop-1].Position+1 {
			stop++
		}
		c.left += stop - at
		c.largest = max(c.largest, stop-at)
		for w := at; w+count <= stop; w++ {
			found.add(window{at: w, cost: windowCost(l, w, count, w-at, stop-w-count, middle)})
		}
		at = stop
	}
}

func windowCost(l *Layout, at, count, before, after int, middle float64) float64 {
	first, last := &l.Seats[at], &l.Seats[at+count-1]
	centre := float64(first.Position+last.Position)/2 - middle
	cost := float64(first.RowIndex) + offCentre*max(centre, -centre)
	if before == 1 {
		cost += orphan
	}
	if after == 1 {
		cost += orphan
	}
	for i := at; i < at+count; i++ {
		if l.Seats[i].Accessible {
			cost += accessibleSeat
		}
	}
	return cost
}

func span(at, count int) []int {
	s := make([]int, count)
	for i := range s {
		s[i] = at + i
	}
	return s
}

// spreadFor is how widely one of asking simultaneous choices should be drawn:
// alone a fan gets the best there is, in a crowd one that is nobody else's.
func spreadFor(asking int64) int {
	return int(min(calmSpread+crowdSpread*max(asking-1, 0), mostSpread))
}

func drawAtRandom(n int) int { return rand.IntN(n) }
