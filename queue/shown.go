package queue

import (
	"strconv"
	"strings"
	"time"
)

// Shown is what a caller was last told about a place, brought back by the caller
// itself: nobody else remembers it, and whoever edits it deceives only themselves.
type Shown struct {
	Position int // 0: none
	// Low is the low end of the wait that was told while Rate and Cap were in force; none
	// without a Rate.
	Low       time.Duration
	Rate, Cap int
}

// Shown is what to bring back with the next poll.
func (v View) Shown() Shown {
	s := Shown{Position: v.Position}
	if v.ETA != nil {
		s.Low, s.Rate, s.Cap = v.ETA.Low, v.Room.Valve.Rate, v.Room.Valve.Cap
	}
	return s
}

func (s Shown) String() string {
	if s.Rate == 0 {
		return strconv.Itoa(s.Position)
	}
	b := strconv.AppendInt(make([]byte, 0, 32), int64(s.Position), 10)
	for _, n := range [3]int{int(s.Low.Seconds()), s.Rate, s.Cap} {
		b = strconv.AppendInt(append(b, '.'), int64(n), 10)
	}
	return string(b)
}

// ParseShown reads what String wrote, or a bare position; the zero Shown for
// anything else: a broken memory is none.
func ParseShown(text string) Shown {
	var n [4]int
	parts := 0
	for rest, more := text, true; more; parts++ {
		var part string
		part, rest, more = strings.Cut(rest, ".")
		v, err := strconv.Atoi(part)
		if err != nil || v < 0 || v > 1e9 || parts == len(n) {
			return Shown{}
		}
		n[parts] = v
	}
	if parts != 1 && parts != len(n) {
		return Shown{}
	}
	return Shown{Position: n[0], Low: time.Duration(n[1]) * time.Second, Rate: n[2], Cap: n[3]}
}

// bound keeps the low end from growing while nobody changed the pace: estimates of
// no-shows and visits move by chance, and a promise that gets worse by chance is none.
func (s Shown) bound(v *View) {
	if v.ETA != nil && s.Rate > 0 && s.Rate == v.Room.Valve.Rate && s.Cap == v.Room.Valve.Cap {
		v.ETA.Low = min(v.ETA.Low, s.Low)
	}
}
