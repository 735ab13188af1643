package queue

// DefaultPriorityShare is the share of a room whose settings do not tell one.
const DefaultPriorityShare = 30

// apart is how far the scores of invited places lie from the time of their arrival:
// ahead of the line below it, so below zero; of the priority line above it. So the
// score alone, and with it the token, tells the line. head.lua has it, too.
const apart = 1 << 52

// preferred reports a score of the priority line.
func preferred(score int64) bool { return score > apart }

// arrival is when the place of this score was given out, µs; a drawn score as it is.
func arrival(score int64) int64 {
	switch {
	case score < 0:
		return score + apart
	case preferred(score):
		return score - apart
	}
	return score
}

// alike reports whether two scores are of places that came in the same way: only then
// the higher one is the later.
func alike(a, b int64) bool { return (a < 0) == (b < 0) && preferred(a) == preferred(b) }

// before is the least and the most places that are called up to and with the one at a
// position of its own line. Of the other line come those who wait there now, as far as
// its share lets them in, or, if it never empties, as many as the share lets in; one more
// or less by what share.lua's rounding left over. known is false for a line that has no
// share while the other has somebody.
func (b *board) before(score int64, position int) (least, most int, known bool) {
	own, other := 100-b.share, b.prior.waiting
	if preferred(score) {
		own, other = b.share, b.line.waiting
	}
	switch {
	case score < 0 || other == 0:
		return position, position, true
	case own == 0:
		return 0, 0, false
	}
	least, most = 0, (position*(100-own)+99)/own
	if sure := position*(100-own) - 100; sure >= 0 {
		least = min(other, sure/own+1)
	}
	return position + least, position + most, true
}
