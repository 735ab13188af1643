package queue

import (
	"context"
	"encoding/hex"
	"fmt"
)

// putBack is restore.lua's answer.
type putBack struct {
	code       string // back, there, ended
	rank       int
	recovering bool
}

// restore puts a place back that Redis has forgotten, at its signed score. It is
// asked before any place that is nowhere is said to have ended: which of the two it
// is, the script knows. ErrOldRun; ErrRecovering while Redis has no settings.
func (l *Line) restore(ctx context.Context, r *room, b *board, p place) (putBack, error) {
	reply, err := l.runList(ctx, restoreScript, r.keys, p.member[:], b.scoreNow(p), p.run, l.witness(r))
	if err != nil {
		return putBack{}, err
	}
	switch code := text(reply, 0); code {
	case "unknown": // emptied a moment ago: the bridge ships the settings again
		return putBack{}, fmt.Errorf("%w: %w", ErrStale, ErrRecovering)
	case "oldrun":
		return putBack{}, ErrOldRun
	case "back":
		l.metrics.placesRestored.WithLabelValues(r.name).Inc()
		return putBack{code: code, rank: int(number(reply, 1)), recovering: number(reply, 2) == 1}, nil
	default:
		return putBack{code: code}, nil
	}
}

// scoreNow is where the place stands by what its token says: a place that gathered
// before a draw stands where it was drawn.
func (b *board) scoreNow(p place) int64 {
	score, _ := b.draw.scoreOf(p.member, p.score)
	return score
}

// vouched reports whether memory may answer for the place as far as losses go: it
// cannot have been forgotten, or Redis was asked for it since.
func (l *Line) vouched(b *board, t Token, p place) bool {
	return arrival(p.score) > b.lost || l.tokens.checked(t) == b.inc
}

// told is the rank told while the line is being put back: the last number, as too
// few are in line to count. -1: not known.
func (r *room) told(p place, shown int) int {
	old := r.older.Load()
	switch {
	case shown > 0:
		return shown - 1
	case old != nil && old.view.Run == p.run:
		return old.position(p.score) - 1
	}
	return -1
}

func memberOfID(placeID string) (string, bool) {
	raw, err := hex.DecodeString(placeID)
	return string(raw), err == nil && len(raw) == len(member{})
}
