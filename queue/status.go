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
	p, err := l.verify(name, t)
	if err != nil {
		return View{}, err
	}
	r, b, err := l.room(ctx, name)
	if err != nil {
		return View{}, err
	}
	q := question{b: b, r: r, t: t, told: told, p: p}
	var v View
	if done, err := l.ask(&q, &v); err != nil || done {
		return v, err
	}
	st, recovering, err := l.find(ctx, r, b, t, q.p)
	err = l.answer(&q, &v, st, recovering, err)
	return v, err
}

// Recall is StatusSince when memory alone can answer; ok is false when it cannot, for
// whatever reason: ask StatusSince then. It neither waits nor keeps name and t. v is
// the caller's, as this is what each poll does.
func (l *Line) Recall(v *View, name string, t Token, told Shown) (ok bool) {
	if t == "" {
		return false
	}
	q := question{t: t, told: told}
	if q.r, q.b = l.known(name); q.b == nil {
		return false
	}
	var err error
	if q.p, err = l.verify(name, t); err != nil {
		return false
	}
	done, err := l.ask(&q, v)
	return err == nil && done && v.Token == t
}

// question is one place that is asked about.
type question struct {
	b          *board
	r          *room
	t          Token
	told       Shown
	p          place // as it stands now; after a draw not as its token says
	shownScore int64
	mark       int64
}

// ask answers from memory what memory knows (done); what it does not, Redis must tell.
func (l *Line) ask(q *question, v *View) (done bool, err error) {
	b := q.b
	q.shownScore = q.p.score
	if q.p.run < b.view.Run {
		return false, ErrOldRun
	}
	if revoked := q.r.revoked.Load(); revoked != nil && revoked.place(q.p) {
		l.fill(v, b, &q.p, standing{status: Expired})
		v.Token, v.Revoked = q.t, true
		return true, nil
	}
	q.p = b.current(q.p)
	q.mark = q.r.markOf(q.p.score).Load()
	if !b.knows(q.p, q.mark) || !l.vouched(b, q.t, q.p) {
		return false, nil
	}
	return true, l.answer(q, v, standing{status: Waiting, score: q.p.score, rank: b.position(q.p.score) - 1}, b.view.Recovering, nil)
}

// answer turns what is known of the place into what its fan is told; cause is why
// Redis could not be asked.
func (l *Line) answer(q *question, v *View, st standing, recovering bool, cause error) error {
	p, told := &q.p, q.told
	if cause != nil {
		var err error
		if st, err = lastKnown(q.b, *p, q.mark, told.Position, cause); err != nil {
			return err
		}
	}
	if st.score != q.shownScore {
		told = Shown{} // of the place as it was
	}
	switch {
	case st.status == Waiting && recovering:
		st.rank = q.r.told(*p, told.Position)
	case st.status == Waiting && told.Position > 0:
		st.rank = min(st.rank, told.Position-1)
	}
	l.fill(v, q.b, p, st)
	told.bound(v)
	// … but not while it is drawn: a drawing that a loss spoils is made again, with other scores.
	was := p.customer
	p.countOn(st.counts)
	if v.Token = q.t; (st.score != q.shownScore || p.customer != was) && st.score != 0 && !v.Undrawn {
		p.score = st.score // the place moved, or was drawn; so that its token tells the new score
		v.Token = l.sign(*p)
	}
	return nil
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
		found, err := l.lookUp(ctx, r, b, p)
		if err != nil {
			return standing{}, false, err
		}
		st = found[0]
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

// reading is what Redis is asked about one member.
type reading struct {
	wait, prior, called, due, inside, gone *redis.FloatCmd
	rank, priorRank                        *redis.IntCmd
	slot, moved, counts                    *redis.StringCmd
}

func (r *room) read(ctx context.Context, tx redis.Pipeliner, who member) reading {
	m := string(who[:])
	return reading{
		wait: tx.ZScore(ctx, r.keys[kWait], m), rank: tx.ZRank(ctx, r.keys[kWait], m),
		prior: tx.ZScore(ctx, r.keys[kPriority], m), priorRank: tx.ZRank(ctx, r.keys[kPriority], m),
		called: tx.ZScore(ctx, r.keys[kCalled], m), due: tx.ZScore(ctx, r.keys[kDue], m),
		inside: tx.ZScore(ctx, r.keys[kInside], m), slot: tx.HGet(ctx, r.keys[kSlots], m),
		gone:  tx.ZScore(ctx, r.keys[kGone], m),
		moved: tx.HGet(ctx, r.keys[kMoves], movedAway+m), counts: tx.HGet(ctx, r.keys[kMoves], movedHere+m),
	}
}

// lookUp reads members in one round trip and one instant (MULTI): read apart, a
// place that moves between two reads would be seen nowhere.
func (l *Line) lookUp(ctx context.Context, r *room, b *board, places ...place) ([]standing, error) {
	reads := make([]reading, len(places))
	_, err := l.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		for i := range places {
			reads[i] = r.read(ctx, tx, places[i].member)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, storeError("status", err)
	}
	now := b.now + time.Since(b.at).Microseconds()
	found := make([]standing, len(places))
	for i := range reads {
		found[i] = reads[i].standing(places[i], now)
	}
	return found, nil
}

// standing is where the place was at that instant; now is Redis' clock, µs.
func (r reading) standing(p place, now int64) standing {
	switch {
	case r.wait.Err() == nil:
		return standing{status: Waiting, score: int64(r.wait.Val()), rank: int(r.rank.Val()), counts: afterBar(r.counts.Val())}
	case r.prior.Err() == nil:
		return standing{status: Waiting, score: int64(r.prior.Val()), rank: int(r.priorRank.Val()), counts: afterBar(r.counts.Val())}
	case r.called.Err() == nil:
		return standing{status: Called, score: int64(r.called.Val()), due: int64(r.due.Val()), counts: afterBar(r.counts.Val())}
	case r.inside.Err() == nil && int64(r.inside.Val()) > now:
		s := parseSlot(r.slot.Val())
		if s.granted > now {
			return standing{status: Called, score: s.score}
		}
		return standing{status: Admitted, score: s.score}
	case movedBefore(r.moved.Val(), p.score):
		return standing{status: Left, moved: true}
	case r.gone.Err() == nil && int64(r.gone.Val()) >= p.score && alike(int64(r.gone.Val()), p.score): // this place, not one of before
		return standing{status: Left}
	}
	return standing{status: Expired}
}

// view is what fill fills.
func (l *Line) view(b *board, p place, st standing) (v View) {
	l.fill(&v, b, &p, st)
	return v
}

// fill is the one place a View is made, all but its token; v is empty before.
func (l *Line) fill(v *View, b *board, p *place, st standing) {
	v.PlaceID, v.Status, v.Waiting, v.Bound = p.id(), st.status, b.view.Waiting, p.bound
	v.Room = b.view
	l.ageing(&v.Room, b)
	v.Invited, v.Priority, v.Moved = st.score < 0, preferred(st.score), st.moved
	switch st.status {
	case Waiting:
		if v.Undrawn = b.undecided(); v.Undrawn {
			break // nobody has a number yet
		}
		v.Position, v.Ahead = st.rank+1, max(st.rank, 0)
		v.Waiting = max(v.Waiting, v.Position)
		if least, most, known := b.before(st.score, v.Position); known {
			v.ETA = estimateBetween(paceOf(b, l.opts.ReportTTL), least, most)
		}
	case Called:
		if v.StandingBy = st.due == 0; !v.StandingBy {
			v.CalledUntil = instant(max(st.due, b.grace))
		}
	case Admitted, Left, Expired:
	}
	v.PollAfter = pollAfter(v)
}
