package queue

import (
	"encoding/json"
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
	pmark   int64         // … of the priority line
	report  int64         // when the last report was stamped, µs; 0 never
	grace   int64         // no invitation runs out before, µs
	turn    time.Duration // mean length of a visit; 0 when none has ended yet
	noShow  float64       // share of the called who do not come
	valve   valveState
	line    ranks
	prior   ranks // of the priority line
	share   int   // percent of the calls that are the priority line's while both lines wait
	gone    map[member]int64
	draw    drawn
	revoked int64 // version of the list of who is revoked; 0 never shipped
	inc     int64 // which memory this is
	seen    int64 // this edge's mark in it
	lost    int64 // places up to this score may be missing in it; 0: none
}

func readBoard(name string, reply []any, at time.Time) *board {
	s, st := readFields(reply, 0), readFields(reply, 1)
	b := &board{
		at: at, now: number(reply, 2),
		last: st.number("last"), mark: st.number("mark"), pmark: st.number("pmark"), report: st.number("report"), grace: st.number("grace"),
		turn: time.Duration(st.number("turn")) * time.Microsecond,
		gone: map[member]int64{}, inc: st.number("inc"), seen: number(reply, 13), lost: st.number("lost"),
	}
	noshow, show := st.real("noshow"), st.real("show")
	b.noShow = min(0.5, noshow/(noshow+show+10)) // as call.lua reckons it
	b.view = RoomView{
		Room: name, Version: s.number("version"), Run: int(s.number("run")), Mode: s["mode"], State: s["state"],
		RatePerMinute: int(s.number("rate")), Cap: int(s.number("cap")), Title: s["title"],
		OpensAt: instant(s.number("opens")), GathersAt: instant(s.number("gathers")), Timezone: s["zone"], BookingURL: s["url"],
		Waiting: int(number(reply, 3) + number(reply, 10)), Priority: int(number(reply, 10)), Called: int(number(reply, 4)), StandingBy: int(number(reply, 5)),
		Inside: int(number(reply, 6)), Admitted: st.number("admitted"),
		Available: int(st.number("available")), Total: int(st.number("total")), SoldOut: st["soldout"] == "1", At: at, Recovering: st["hold"] != "",
	}
	b.revoked = st.number("revoked")
	b.draw = readDraw(s, st)
	b.view.Draw = viewDraw(s, b.draw)
	b.valve, b.view.Valve.Mode = readValve(st), s["valve"]
	_ = json.Unmarshal([]byte(st["lanes"]), &b.view.Lanes) // absent before the first report

	b.line = readRanks(number(reply, 3), list(reply, 7), list(reply, 8))
	b.prior = readRanks(number(reply, 10), list(reply, 11), list(reply, 12))
	if b.share = DefaultPriorityShare; s["share"] != "" {
		b.share = int(s.number("share"))
	}
	b.view.PriorityShare = b.share
	gone := list(reply, 9)
	for i := 0; i+1 < len(gone); i += 2 {
		var m member
		copy(m[:], text(gone, i))
		b.gone[m] = number(gone, i+1)
	}
	return b
}

// ranks are the line that a score is of.
func (b *board) ranks(score int64) *ranks {
	if preferred(score) {
		return &b.prior
	}
	return &b.line
}

// knows reports whether the place is surely still waiting, so that memory may
// answer: it lies above its line's watermark, it did not leave or move, and it joined
// before the board was read.
func (b *board) knows(p place, mark int64) bool {
	at, newest := p.score, b.ranks(p.score).tail()
	if b.undecided() { // while it is drawn the tail falls, and nobody is called
		at, newest = arrival(p.score), b.last
	}
	if p.score <= mark || at > newest {
		return false
	}
	left, ok := b.gone[p.member]
	return !ok || p.score > left
}

// position is the place's in its own line, from 1.
func (b *board) position(score int64) int { return b.ranks(score).position(score) }
