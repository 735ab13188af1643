package catalog

import "math"

type point = [2]float64

// surface maps a section's own coordinates onto the venue's plane: u runs along
// the row from its middle, v away from the stage, both in seats. turn is the
// direction of a row there, in degrees.
type surface interface {
	at(u, v float64) point
	turn(u, v float64) float64
	span(v float64) (length float64, bounded bool) // of a row at v
}

// plane lays rows straight, or on arcs about a common centre when radius > 0.
type plane struct {
	origin point
	turned float64 // radians
	radius float64 // of the row at v = 0
}

func (p plane) at(u, v float64) point {
	x, y := u, v
	if p.radius > 0 {
		// The centre lies before the first row, so that the ends of a row come
		// nearer to the stage than its middle.
		a := u / (p.radius + v)
		x, y = (p.radius+v)*math.Sin(a), (p.radius+v)*math.Cos(a)-p.radius
	}
	s, c := math.Sincos(p.turned)
	return point{p.origin[0] + x*c - y*s, p.origin[1] + x*s + y*c}
}

func (p plane) turn(u, v float64) float64 {
	t := p.turned
	if p.radius > 0 {
		t -= u / (p.radius + v)
	}
	return t * 180 / math.Pi
}

func (plane) span(float64) (float64, bool) { return 0, false }

// bowl is a rounded rectangle about the origin. Its edge has nine pieces,
// clockwise from the middle of the top: half a side, then corner and side by turns,
// and half a side again. A station is a piece's number plus a share of it.
type bowl struct{ halfW, halfH, corner float64 }

const bowlPieces = 9

func (b bowl) piece(i int, v float64) float64 {
	switch i {
	case 0, 8:
		return b.halfW - b.corner
	case 2, 6:
		return 2 * (b.halfH - b.corner)
	case 4:
		return 2 * (b.halfW - b.corner)
	default:
		return (b.corner + v) * math.Pi / 2
	}
}

// length is how far a station lies along the edge at distance v from the bowl's.
func (b bowl) length(station, v float64) float64 {
	whole := min(int(station), bowlPieces-1)
	sum := (station - float64(whole)) * b.piece(whole, v)
	for i := range whole {
		sum += b.piece(i, v)
	}
	return sum
}

func (b bowl) station(length, v float64) float64 {
	for i := range bowlPieces {
		p := b.piece(i, v)
		if length <= p && p > 0 {
			return float64(i) + max(length, 0)/p
		}
		length -= p
	}
	return bowlPieces
}

// ray is the point of a station at distance v, and the outward direction there in
// radians, where 0 points up and a quarter turn to the right.
func (b bowl) ray(station, v float64) (point, float64) {
	i := min(int(station), bowlPieces-1)
	f := station - float64(i)
	w, h := b.halfW-b.corner, b.halfH-b.corner // the corners' centres
	r := b.corner + v
	switch i {
	case 0:
		return point{f * w, -h - r}, 0
	case 2:
		return point{w + r, -h + f*2*h}, math.Pi / 2
	case 4:
		return point{w - f*2*w, h + r}, math.Pi
	case 6:
		return point{-w - r, h - f*2*h}, 3 * math.Pi / 2
	case 8:
		return point{-w + f*w, -h - r}, 2 * math.Pi
	}
	quarter := float64(i / 2) // 1, 3, 5, 7 are the four corners
	centre := [4]point{{w, -h}, {w, h}, {-w, h}, {-w, -h}}[i/2]
	a := (quarter + f) * math.Pi / 2
	return point{centre[0] + r*math.Sin(a), centre[1] - r*math.Cos(a)}, a
}

// sector is the part of the bowl's surroundings between two stations.
type sector struct {
	bowl     bowl
	from, to float64 // stations
	offset   float64 // of the row at v = 0 from the bowl's edge
}

func (s sector) span(v float64) (float64, bool) {
	v += s.offset
	return s.bowl.length(s.to, v) - s.bowl.length(s.from, v), true
}

func (s sector) ray(u, v float64) (point, float64) {
	whole, _ := s.span(v)
	v += s.offset
	return s.bowl.ray(s.bowl.station(s.bowl.length(s.from, v)+whole/2+u, v), v)
}

func (s sector) at(u, v float64) point     { p, _ := s.ray(u, v); return p }
func (s sector) turn(u, v float64) float64 { _, a := s.ray(u, v); return a * 180 / math.Pi }

// sectors divides the stretch between two shares of the bowl's edge into n sectors of equal
// length at their middle depth. The stretch itself is measured on the edge, so
// that tiers with the same shares begin and end on the same rays.
func (b bowl) sectors(n int, from, to, offset, depth float64) []sector {
	around := b.length(bowlPieces, 0)
	mid := offset + depth/2
	start := b.length(b.station(from*around, 0), mid)
	stretch := b.length(b.station(to*around, 0), mid) - start
	out := make([]sector, n)
	for i := range out {
		out[i] = sector{bowl: b, offset: offset,
			from: b.station(start+stretch*float64(i)/float64(n), mid),
			to:   b.station(start+stretch*float64(i+1)/float64(n), mid)}
	}
	return out
}

// edge is the bowl's own outline, as a polygon.
func (b bowl) edge() []point {
	var out []point
	for i := range bowlPieces {
		steps := 1
		if i%2 == 1 {
			steps = 12
		}
		for s := range steps {
			p, _ := b.ray(float64(i)+float64(s)/float64(steps), 0)
			out = append(out, p)
		}
	}
	return out
}

func rounded(p point) point {
	return point{math.Round(p[0]*100) / 100, math.Round(p[1]*100) / 100}
}
