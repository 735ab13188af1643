package queue

import (
	"encoding/json"
	"sort"
	"time"
)

// board is one reading of a room, immutable once made: every poll of the next
// second is answered from it.
type board struct {
	view    RoomView
	at      time.Time     // this machine's clock, for the board's age
	now     int64         // Redis' clock when it was read, µs
	last    int64         // highest score given out
	mark    int64         // watermark: highest score ever called
	report  int64         // when the last report was stamped, µs; 0 never
	grace   int64         // no invitation runs out before, µs
	turn    time.Duration // mean length of a visit; 0 when none has ended yet
	noShow  float64       // share of the called who do not come
	valve   valveState
	exact   []int64 // scores at the head, ascending
	samples []point // behind the head, ascending; the last is the tail
	gone    map[member]int64
	draw    drawn
	revoked int64 // version of the list of who is revoked; 0 never shipped
	inc     int64 // which memory this is
	beat    int64
	lost    int64 // places up to this score may be missing in it; 0: none
}

type point struct {
	rank  int // from 0
	score int64
}

func readBoard(name string, reply []any, at time.Time) *board {
	s, st := readFields(reply, 0), readFields(reply, 1)
	b := &board{
		at: at, now: number(reply, 2),
		last: st.number("last"), mark: st.number("mark"), report: st.number("report"), grace: st.number("grace"),
		turn: time.Duration(st.number("turn")) * time.Microsecond,
		gone: map[member]int64{}, inc: st.number("inc"), beat: st.number("beat"), lost: st.number("lost"),
	}
	noshow, show := st.real("noshow"), st.real("show")
	b.noShow = min(0.5, noshow/(noshow+show+10)) // as call.lua reckons it
	b.view = RoomView{
		Room: name, Version: s.number("version"), Run: int(s.number("run")), Mode: s["mode"], State: s["state"],
		RatePerMinute: int(s.number("rate")), Cap: int(s.number("cap")), Title: s["title"],
		OpensAt: instant(s.number("opens")), GathersAt: instant(s.number("gathers")), Timezone: s["zone"], BookingURL: s["url"],
		Waiting: int(number(reply, 3)), Called: int(number(reply, 4)), StandingBy: int(number(reply, 5)),
		Inside: int(number(reply, 6)), Admitted: st.number("admitted"),
		Available: int(st.number("available")), Total: int(st.number("total")), SoldOut: st["soldout"] == "1", At: at, Recovering: st["hold"] != "",
	}
	b.revoked = st.number("revoked")
	b.draw = readDraw(s, st)
	b.view.Draw = viewDraw(s, b.draw)
	b.valve, b.view.Valve.Mode = readValve(st), s["valve"]
	_ = json.Unmarshal([]byte(st["lanes"]), &b.view.Lanes) // absent before the first report

	scores := list(reply, 7)
	b.exact = make([]int64, len(scores))
	for i := range scores {
		b.exact[i] = number(scores, i)
	}
	points := list(reply, 8)
	for i := 0; i+1 < len(points); i += 2 {
		b.samples = append(b.samples, point{rank: int(number(points, i)), score: number(points, i+1)})
	}
	gone := list(reply, 9)
	for i := 0; i+1 < len(gone); i += 2 {
		var m member
		copy(m[:], text(gone, i))
		b.gone[m] = number(gone, i+1)
	}
	return b
}

// tail is the highest score in line; 0 when nobody waits.
func (b *board) tail() int64 {
	switch {
	case len(b.samples) > 0:
		return b.samples[len(b.samples)-1].score
	case len(b.exact) > 0:
		return b.exact[len(b.exact)-1]
	}
	return 0
}

// knows reports whether the place is surely still waiting, so that memory may
// answer: it lies above the watermark, it did not leave or move, and it joined
// before the board was read.
func (b *board) knows(p place, mark int64) bool {
	newest := b.tail()
	if b.undecided() { // while it is drawn the tail falls, and nobody is called
		newest = b.last
	}
	if p.score <= mark || p.score > newest {
		return false
	}
	left, ok := b.gone[p.member]
	return !ok || p.score > left
}

// position counts from 1: exact near the head, interpolated between the samples
// behind, one past the end for a score the board has not seen.
func (b *board) position(score int64) int {
	i := sort.Search(len(b.exact), func(i int) bool { return b.exact[i] >= score })
	if i < len(b.exact) {
		return i + 1
	}
	j := sort.Search(len(b.samples), func(j int) bool { return b.samples[j].score >= score })
	if j == len(b.samples) {
		return b.view.Waiting + 1
	}
	lo, hi := point{rank: len(b.exact) - 1, score: b.exact[len(b.exact)-1]}, b.samples[j]
	if j > 0 {
		lo = b.samples[j-1]
	}
	if hi.score <= lo.score {
		return hi.rank + 1
	}
	part := float64(score-lo.score) / float64(hi.score-lo.score)
	return lo.rank + int(part*float64(hi.rank-lo.rank)+0.5) + 1
}
