package queue

import "encoding/hex"

// drawn is a room's draw on a board.
type drawn struct {
	cut         int64  // highest score of the gathering; 0 before the drawing
	seed        []byte // nil before the drawing
	digest      [32]byte
	publicValue string
	known       bool // the outcome is: a place's number follows from it
	pending     bool // there are steps to take
}

// readDraw takes the draw's outcome from the settings: Postgres has it for good, and
// ships it again to a Redis that lost it. Only the cut is taken from the state while
// it is drawn.
func readDraw(s, st fields) drawn {
	d := drawn{cut: s.number("cut"), publicValue: s["public"]}
	d.seed, _ = hex.DecodeString(s["seed"])
	digest, err := hex.DecodeString(s["digest"])
	if d.known = err == nil && len(digest) == 32 && len(d.seed) > 0; d.known {
		d.digest = [32]byte(digest)
		d.pending = st["draw"] != "done" || st["drawdigest"] != s["digest"]
		return d
	}
	d.cut = st.number("cut")
	d.pending = s["mode"] == "draw" && s["state"] == "drawing" && st["draw"] != "done"
	return d
}

// scoreOf is the drawn score of a place that gathered and bears its score of then:
// ok is false when there was no draw, or the place came after it, or has its drawn
// score already.
func (d *drawn) scoreOf(m member, score int64) (drawnScore int64, ok bool) {
	if !d.known || score < drawnScores || score > d.cut {
		return score, false
	}
	return NewDrawer(d.seed, d.digest, d.publicValue).Score(m), true
}

// current is the place under the score that the line has it by, as far as memory
// can tell: after a draw a token of the gathering bears the score of arrival.
func (b *board) current(p place) place {
	p.score, _ = b.draw.scoreOf(p.member, p.score)
	return p
}

// undecided reports a room whose order is still to be drawn: nobody has a number,
// and nobody is called.
func (b *board) undecided() bool {
	v := &b.view
	return v.Mode == "draw" && !b.draw.known && (v.State == "scheduled" || v.State == "gathering" || v.State == "drawing")
}

// viewDraw is the draw as it may be told: nothing secret before it is done.
func viewDraw(s fields, d drawn) *DrawView {
	done := s.number("drawn") > 0
	if s["mode"] != "draw" && !done {
		return nil
	}
	v := &DrawView{Run: int(s.number("run")), Commitment: s["commitment"], PublicValue: s["public"]}
	if done {
		v.Key = hex.EncodeToString(DrawKey(d.seed, d.digest, d.publicValue))
		v.Seed, v.Digest, v.Entries, v.At = s["seed"], s["digest"], int(s.number("entries")), instant(s.number("drawn"))
	}
	return v
}
