package queue

import "encoding/hex"

// drawn is a room's draw on a board.
type drawn struct {
	cut         int64  // highest score of the gathering; 0 before the drawing
	seed        []byte // nil before the drawing
	digest      [32]byte
	publicValue string
	known       bool // seed and digest are: a place's number follows from it
}

// readDraw takes the draw's outcome from the settings: Postgres has it for good, and
// ships it again to a Redis that lost it.
func readDraw(s fields) drawn {
	d := drawn{cut: s.number("cut"), publicValue: s["public"]}
	d.seed, _ = hex.DecodeString(s["seed"])
	digest, err := hex.DecodeString(s["digest"])
	if d.known = err == nil && len(digest) == 32 && len(d.seed) > 0 && d.cut > 0; d.known {
		d.digest = [32]byte(digest)
	}
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

// viewDraw is the draw as it may be told: nothing secret before it is done.
func viewDraw(s fields) *DrawView {
	drawn := s.number("drawn") > 0
	if s["mode"] != "draw" && !drawn {
		return nil
	}
	v := &DrawView{Run: int(s.number("run")), Commitment: s["commitment"], PublicValue: s["public"]}
	if drawn {
		v.Seed, v.Digest, v.Entries, v.At = s["seed"], s["digest"], int(s.number("entries")), instant(s.number("drawn"))
	}
	return v
}
