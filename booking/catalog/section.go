package catalog

import (
	"math"
)

// band is one or more equal rows of a section, one behind the other.
type band struct {
	rows       []string
	seats      []string // labels; nil when fit
	fit        bool
	aisleAfter map[string]bool
	accessible map[string]bool // seat labels
	price      string
	shift      float64
	xy         []point // explicit, for one row
}

// section is a block of seats as read, not yet laid out.
type section struct {
	id, label string
	codes     string // the pattern of seat codes
	surface   surface
	rowPitch  float64
	gap       float64 // left free in total at both ends of a bounded row
	bands     []band
	standing  int
	at, size  point  // of a standing area
	price     string // of a standing area
}

// laid is a section's seats with what is drawn around them.
type laid struct {
	seats []Seat
	shape shapeSection
	rows  []shapeRow
}

const pad = 0.75 // of an outline around its seats' middles

// row is one row being laid out: its places from left to right, aisles included.
type row struct {
	v      float64
	places []int     // seat number in band.seats, or -1 where an aisle is
	us     []float64 // of each place
}

func (s section) lay() laid {
	if s.standing > 0 {
		return s.layStanding()
	}
	var out laid
	var edges [][2]float64 // of each row: leftmost and rightmost u
	var depths []float64
	index := 0
	for _, b := range s.bands {
		for _, label := range b.rows {
			r := s.arrange(b, float64(index)*s.rowPitch)
			index++
			if len(r.us) == 0 {
				continue
			}
			out.seats = append(out.seats, s.seatsOf(b, label, index, r)...)
			first, last := r.us[0], r.us[len(r.us)-1]
			edges = append(edges, [2]float64{first - pad, last + pad})
			depths = append(depths, r.v)
			if b.fit {
				continue // too many and too small to be read: no row labels around a bowl
			}
			p := s.surface.at(first-1.1, r.v)
			if len(b.xy) > 0 {
				p = point{b.xy[0][0] - 1.1, b.xy[0][1]}
			}
			out.rows = append(out.rows, shapeRow{Section: s.id, Row: label, X: p[0], Y: p[1],
				Turn: math.Round(s.surface.turn(first, r.v)*10) / 10})
		}
	}
	out.shape = shapeSection{ID: s.id, Label: s.label, Kind: "seated", Seats: len(out.seats)}
	s.outline(&out, edges, depths)
	return out
}

// arrange gives every place of a row its u.
func (s section) arrange(b band, v float64) row {
	r := row{v: v}
	pitch := 1.0
	if b.fit {
		length, _ := s.surface.span(v)
		n := max(int(length-s.gap), 0)
		if n > 0 {
			pitch = (length - s.gap) / float64(n)
		}
		for i := range n {
			r.places = append(r.places, i)
		}
	}
	for i, label := range b.seats {
		r.places = append(r.places, i)
		if b.aisleAfter[label] {
			r.places = append(r.places, -1)
		}
	}
	for i := range r.places {
		r.us = append(r.us, (float64(i)-float64(len(r.places)-1)/2)*pitch+b.shift)
	}
	return r
}

func (s section) seatsOf(b band, label string, index int, r row) []Seat {
	var out []Seat
	for i, place := range r.places {
		if place < 0 {
			continue // an aisle takes a position, so that its sides are no neighbours
		}
		name := itoa(place + 1)
		if !b.fit {
			name = b.seats[place]
		}
		p := s.surface.at(r.us[i], r.v)
		if len(b.xy) > 0 {
			p = b.xy[place]
		}
		out = append(out, Seat{
			Code: seatCode(s.codes, s.id, label, name), Section: s.id, Row: label, Label: name,
			RowIndex: index, Position: i + 1, X: p[0], Y: p[1],
			Accessible: b.accessible[name], PriceClass: b.price,
		})
	}
	return out
}

// outline walks around the section: along its first row, back at the rows' right ends,
// along its last row, and forward at the left ends.
func (s section) outline(l *laid, edges [][2]float64, depths []float64) {
	if len(edges) == 0 {
		return
	}
	if s.explicit() {
		l.shape.Outline, l.shape.LabelAt = boxAround(l.seats)
		return
	}
	last := len(edges) - 1
	_, bounded := s.surface.span(0)
	var right, left []point
	side := func(e [2]float64, v float64) {
		right = append(right, s.surface.at(e[1], v))
		left = append(left, s.surface.at(e[0], v))
	}
	for i, e := range edges {
		// Rows of unlike length make steps; between two rays the sides are straight.
		if i == 0 {
			side(e, depths[i]-pad)
		} else if !bounded {
			side(e, depths[i]-s.rowPitch/2)
		}
		if i == last {
			side(e, depths[i]+pad)
		} else if !bounded {
			side(e, depths[i]+s.rowPitch/2)
		}
	}
	poly := s.along(edges[0], depths[0]-pad)
	poly = append(poly, straightened(right)...)
	back := s.along(edges[last], depths[last]+pad)
	for i := len(back) - 1; i >= 0; i-- {
		poly = append(poly, back[i])
	}
	left = straightened(left)
	for i := len(left) - 1; i >= 0; i-- {
		poly = append(poly, left[i])
	}
	l.shape.Outline = poly
	mid := len(edges) / 2
	l.shape.LabelAt = s.surface.at((edges[mid][0]+edges[mid][1])/2, depths[mid])
}

func (s section) explicit() bool {
	for _, b := range s.bands {
		if len(b.xy) > 0 {
			return true
		}
	}
	return false
}

func boxAround(seats []Seat) (outline []point, middle point) {
	lo, hi := point{seats[0].X, seats[0].Y}, point{seats[0].X, seats[0].Y}
	for _, s := range seats {
		lo = point{min(lo[0], s.X), min(lo[1], s.Y)}
		hi = point{max(hi[0], s.X), max(hi[1], s.Y)}
	}
	lo, hi = point{lo[0] - pad, lo[1] - pad}, point{hi[0] + pad, hi[1] + pad}
	return []point{lo, {hi[0], lo[1]}, hi, {lo[0], hi[1]}}, point{(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2}
}

// along is a row's line without its ends.
func (s section) along(edge [2]float64, v float64) []point {
	const steps = 8
	var out []point
	for i := 1; i < steps; i++ {
		out = append(out, s.surface.at(edge[0]+(edge[1]-edge[0])*float64(i)/steps, v))
	}
	return straightened(out)
}

// straightened drops the points that lie on the line between their neighbours.
func straightened(ps []point) []point {
	out := ps[:0:0]
	for i, p := range ps {
		if i > 0 && i < len(ps)-1 {
			a, b := out[len(out)-1], ps[i+1]
			cross := (b[0]-a[0])*(p[1]-a[1]) - (b[1]-a[1])*(p[0]-a[0])
			if math.Abs(cross) < 0.01*math.Hypot(b[0]-a[0], b[1]-a[1]) {
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// layStanding spreads the places over the area, as wide as it is deep per place.
func (s section) layStanding() laid {
	w, h := s.size[0], s.size[1]
	cols := min(max(int(math.Round(math.Sqrt(float64(s.standing)*w/h))), 1), s.standing)
	rows := (s.standing + cols - 1) / cols
	x0, y0 := s.at[0]-w/2, s.at[1]-h/2
	out := laid{shape: shapeSection{
		ID: s.id, Label: s.label, Kind: "standing", Seats: s.standing, LabelAt: s.at,
		Outline: []point{{x0, y0}, {x0 + w, y0}, {x0 + w, y0 + h}, {x0, y0 + h}},
	}}
	for i := range s.standing {
		r, c := i/cols, i%cols
		name := pad4(i + 1)
		out.seats = append(out.seats, Seat{
			Code: s.id + "-" + name, Section: s.id, Label: name, RowIndex: r + 1, Position: c + 1,
			X: x0 + w*(float64(c)+0.5)/float64(cols), Y: y0 + h*(float64(r)+0.5)/float64(rows),
			Standing: true, PriceClass: s.price,
		})
	}
	return out
}
