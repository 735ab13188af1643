package booking

import (
	"math/rand/v2"
	"sort"
)

// Weights of the chooser, in rows: a window one row further back costs one.
const (
	offCentre      = 0.25 // a seat away from the middle of its row
	orphan         = 100  // a single seat left beside the window
	accessibleSeat = 400  // an accessible seat given to who did not ask for one
	nearEqual      = 50   // windows no worse than this are equals, as long as there are few
	spreadOver     = 64   // among how many equals the choice is drawn
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
// places need not be neighbours. It is pure; free says what may be taken.
func chooseBest(l *Layout, free func(i int) bool, count int, section string, draw func(n int) int) choice {
	var c choice
	var windows []window
	for start := 0; start < len(l.Seats); {
		end := start + 1
		for end < len(l.Seats) && sameRow(&l.Seats[start], &l.Seats[end]) {
			end++
		}
		if section == "" || l.Seats[start].Section == section {
			windows = c.row(l, free, start, end, count, windows)
		}
		start = end
	}
	if len(windows) == 0 {
		return c
	}
	sort.Slice(windows, func(a, b int) bool { return windows[a].cost < windows[b].cost })
	equals := 1
	for equals < len(windows) && equals < spreadOver && windows[equals].cost <= windows[0].cost+nearEqual {
		equals++
	}
	c.seats = windows[draw(equals)].seats
	return c
}

type window struct {
	seats []int
	cost  float64
}

// sameRow: one physical row, or one standing area.
func sameRow(a, b *Seat) bool {
	return a.Section == b.Section && a.Standing == b.Standing && (a.Standing || a.RowIndex == b.RowIndex)
}

// row adds the windows of seats [start, end), which are one row or one standing area.
func (c *choice) row(l *Layout, free func(int) bool, start, end, count int, windows []window) []window {
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
			windows = append(windows, window{seats: open[at : at+count], cost: float64(l.Seats[open[at]].RowIndex)})
		}
		return windows
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
			windows = append(windows, window{seats: span(w, count), cost: windowCost(l, w, count, w-at, stop-w-count, middle)})
		}
		at = stop
	}
	return windows
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

func drawAtRandom(n int) int { return rand.IntN(n) }
