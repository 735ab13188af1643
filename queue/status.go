package queue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// standing is what Redis says about a member at one instant.
type standing struct {
	status Status
	score  int64  // of the place as it is now; 0 when there is none
	rank   int    // from 0; waiting only
	due    int64  // end of the claim window, µs; 0 while standing by
	moved  bool   // with Left: to another browser
	counts string // on whom a place counts that was moved here (hex); "" for any other, or not asked
}

// Status is the place as it stands. shown is the last position the caller was
// shown under this very token (0: none); a waiting fan is never told a higher one.
// Above the watermark memory answers; at or below it, or for a place newer than
// the board, Redis is asked once. While Redis is away the last numbers are told
// and Room.Stale says so. Errors: ErrBadToken, ErrOldRun, ErrUnknownRoom, ErrStale.
func (l *Line) Status(ctx context.Context, name string, t Token, shown int) (View, error) {
	return l.StatusSince(ctx, name, t, Shown{Position: shown})
}

// StatusSince is Status for a caller who brings back all they were shown: the low
// end of the wait does not grow either, while rate and cap in force are the same.
func (l *Line) StatusSince(ctx context.Context, name string, t Token, told Shown) (View, error) {
	shown := told.Position
	p, err := l.verify(name, t)
	if err != nil {
		return View{}, err
	}
	r, b, err := l.room(ctx, name)
	if err != nil {
		return View{}, err
	}
	if p.run < b.view.Run {
		return View{}, ErrOldRun
	}
	if r.revoked.Load().place(p) {
		v := l.view(b, p, standing{status: Expired})
		v.Token, v.Revoked = t, true
		return v, nil
	}
	shownScore := p.score
	p = b.current(p)
	var st standing
	mark := r.mark.Load()
	recovering := b.view.Recovering
	if b.knows(p, mark) && l.vouched(b, t, p) {
		st = standing{status: Waiting, score: p.score, rank: b.position(p.score) - 1}
	} else if st, recovering, err = l.find(ctx, r, b, t, p); err != nil {
		if st, err = lastKnown(b, p, mark, shown, err); err != nil {
			return View{}, err
		}
	}
	if st.score != shownScore {
		shown, told = 0, Shown{} // of the place as it was
	}
	switch {
	case st.status == Waiting && recovering:
		st.rank = r.told(p, shown)
	case st.status == Waiting && shown > 0:
		st.rank = min(st.rank, shown-1)
	}
	v := l.view(b, p, st)
	told.bound(&v)
	// … but not while it is drawn: a drawing that a loss spoils is made again, with other scores.
	was := p.customer
	p.countOn(st.counts)
	if v.Token = t; (st.score != shownScore || p.customer != was) && st.score != 0 && !v.Undrawn {
		p.score = st.score // the place moved, or was drawn; so that its token tells the new score
		v.Token = l.sign(p)
	}
	return v, nil
}

// lastKnown answers without Redis: what memory has for a place above the
// watermark, what was shown before for one near the head.
func lastKnown(b *board, p place, mark int64, shown int, cause error) (standing, error) {
	switch {
	case errors.Is(cause, context.Canceled):
		return standing{}, cause
	case p.score > mark:
		return standing{status: Waiting, score: p.score, rank: b.position(p.score) - 1}, nil
	case shown > 0:
		return standing{status: Waiting, score: p.score, rank: shown - 1}, nil
	}
	return standing{}, cause
}

// find is lookUp, and puts the place back when it is nowhere because it was forgotten.
func (l *Line) find(ctx context.Context, r *room, b *board, t Token, p place) (st standing, recovering bool, err error) {
	recovering = b.view.Recovering
	for range 2 {
		if st, err = l.lookUp(ctx, r, b, p); err != nil {
			return standing{}, false, err
		}
		if st.status != Expired {
			l.tokens.check(t, b.inc)
			return st, recovering, nil
		}
		back, err := l.restore(ctx, r, b, p)
		switch {
		case err != nil:
			return standing{}, false, err
		case back.code == "back":
			l.tokens.check(t, b.inc)
			return standing{status: Waiting, score: b.scoreNow(p), rank: back.rank}, recovering || back.recovering, nil
		case back.code != "there":
			return st, recovering, nil
		}
	}
	return st, recovering, nil
}

// lookUp reads one member in one round trip and one instant (MULTI): read apart, a
// place that moves between two reads would be seen nowhere.
func (l *Line) lookUp(ctx context.Context, r *room, b *board, p place) (standing, error) {
	m := string(p.member[:])
	var wait, called, due, inside, gone *redis.FloatCmd
	var rank *redis.IntCmd
	var slot, moved, counts *redis.StringCmd
	_, err := l.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		wait, rank = tx.ZScore(ctx, r.keys[kWait], m), tx.ZRank(ctx, r.keys[kWait], m)
		called, due = tx.ZScore(ctx, r.keys[kCalled], m), tx.ZScore(ctx, r.keys[kDue], m)
		inside, slot = tx.ZScore(ctx, r.keys[kInside], m), tx.HGet(ctx, r.keys[kSlots], m)
		gone, moved = tx.ZScore(ctx, r.keys[kGone], m), tx.HGet(ctx, r.keys[kMoves], movedAway+m)
		counts = tx.HGet(ctx, r.keys[kMoves], movedHere+m)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return standing{}, storeError("status", err)
	}
	now := b.now + time.Since(b.at).Microseconds()
	switch {
	case wait.Err() == nil:
		return standing{status: Waiting, score: int64(wait.Val()), rank: int(rank.Val()), counts: afterBar(counts.Val())}, nil
	case called.Err() == nil:
		return standing{status: Called, score: int64(called.Val()), due: int64(due.Val()), counts: afterBar(counts.Val())}, nil
	case inside.Err() == nil && int64(inside.Val()) > now:
		s := parseSlot(slot.Val())
		if s.granted > now {
			return standing{status: Called, score: s.score}, nil
		}
		return standing{status: Admitted, score: s.score}, nil
	case movedBefore(moved.Val(), p.score):
		return standing{status: Left, moved: true}, nil
	case gone.Err() == nil && int64(gone.Val()) >= p.score && (gone.Val() < 0) == (p.score < 0): // this place, not one of before
		return standing{status: Left}, nil
	}
	return standing{status: Expired}, nil
}

// view is the one place a View is made, all but its token.
func (l *Line) view(b *board, p place, st standing) View {
	v := View{
		PlaceID: p.id(), Status: st.status, Waiting: b.view.Waiting, Bound: p.bound,
		Room: l.roomView(b),
	}
	v.Invited, v.Moved = st.score < 0, st.moved
	switch st.status {
	case Waiting:
		if v.Undrawn = b.undecided(); v.Undrawn {
			break // nobody has a number yet
		}
		v.Position, v.Ahead = st.rank+1, max(st.rank, 0)
		v.Waiting = max(v.Waiting, v.Position)
		v.ETA = estimate(paceOf(b, l.opts.ReportTTL), v.Position)
	case Called:
		if v.StandingBy = st.due == 0; !v.StandingBy {
			v.CalledUntil = instant(max(st.due, b.grace))
		}
	case Admitted, Left, Expired:
	}
	v.PollAfter = pollAfter(v)
	return v
}
