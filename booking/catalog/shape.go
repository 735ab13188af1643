package catalog

import (
	"encoding/json"
	"math"
)

// shape is layout.shape; the package comment describes its JSON.
type shape struct {
	Width    float64        `json:"width"`
	Height   float64        `json:"height"`
	Seat     float64        `json:"seat"`
	Stage    *shapeStage    `json:"stage,omitempty"`
	Floor    []point        `json:"floor,omitempty"`
	Sections []shapeSection `json:"sections"`
	Rows     []shapeRow     `json:"rows"`
}

type shapeStage struct {
	Kind   string  `json:"kind"`
	Label  string  `json:"label"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

type shapeSection struct {
	ID      string  `json:"id"`
	Label   string  `json:"label"`
	Kind    string  `json:"kind"`
	Outline []point `json:"outline"`
	LabelAt point   `json:"labelAt"`
	Seats   int     `json:"seats"`
}

type shapeRow struct {
	Section string  `json:"section"`
	Row     string  `json:"row"`
	X       float64 `json:"x"`
	Y       float64 `json:"y"`
	Turn    float64 `json:"turn"`
}

const (
	seatSize = 0.8
	margin   = 2.0 // of the drawing, in seats
)

// place moves everything into the box from (0, 0), margin included, and rounds it:
// a hundredth of a seat is finer than any screen, and keeps the map's JSON small.
func (s *shape) place(seats []Seat) {
	lo := point{math.Inf(1), math.Inf(1)}
	hi := point{math.Inf(-1), math.Inf(-1)}
	s.each(seats, func(x, y *float64) {
		lo = point{min(lo[0], *x), min(lo[1], *y)}
		hi = point{max(hi[0], *x), max(hi[1], *y)}
	})
	if s.Stage != nil {
		hi = point{max(hi[0], s.Stage.X+s.Stage.Width), max(hi[1], s.Stage.Y+s.Stage.Height)}
	}
	s.each(seats, func(x, y *float64) {
		p := rounded(point{*x - lo[0] + margin, *y - lo[1] + margin})
		*x, *y = p[0], p[1]
	})
	size := rounded(point{hi[0] - lo[0] + 2*margin, hi[1] - lo[1] + 2*margin})
	s.Width, s.Height, s.Seat = size[0], size[1], seatSize
}

// each visits every coordinate of the drawing.
func (s *shape) each(seats []Seat, visit func(x, y *float64)) {
	for i := range seats {
		visit(&seats[i].X, &seats[i].Y)
	}
	if s.Stage != nil {
		visit(&s.Stage.X, &s.Stage.Y)
	}
	for i := range s.Floor {
		visit(&s.Floor[i][0], &s.Floor[i][1])
	}
	for i := range s.Sections {
		sec := &s.Sections[i]
		visit(&sec.LabelAt[0], &sec.LabelAt[1])
		for j := range sec.Outline {
			visit(&sec.Outline[j][0], &sec.Outline[j][1])
		}
	}
	for i := range s.Rows {
		visit(&s.Rows[i].X, &s.Rows[i].Y)
	}
}

func (s *shape) json() (json.RawMessage, error) {
	if s.Sections == nil {
		s.Sections = []shapeSection{}
	}
	if s.Rows == nil {
		s.Rows = []shapeRow{}
	}
	return json.Marshal(s)
}
