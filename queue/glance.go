package queue

import (
	"context"
	"time"
)

// Near is how many of the head have something to learn within seconds: places up to
// this position, and the called, are worth a stream.
const Near = 200

// Near reports whether the place is at the head, or called.
func (v View) Near() bool {
	return v.Status == Called || v.Status == Waiting && !v.Undrawn && v.Position > 0 && v.Position <= Near
}

// Over reports whether nothing more will happen to the place in line.
func (v View) Over() bool { return v.Status == Admitted || v.Status == Left || v.Status == Expired }

// Ask is one of many places of a room that are looked at together.
type Ask struct {
	Token Token
	Told  Shown     // what was told last
	Seen  time.Time // Room.At of the view that was told last; zero: none
}

// Answer is about one Ask. Same: nothing new is known since Seen, and View is zero.
type Answer struct {
	View View
	Err  error // as StatusSince
	Same bool
}

// glanceChunk bounds what one MULTI reads: some two milliseconds of Redis.
const glanceChunk = 250

// Glance is StatusSince for many places of one room: memory answers for those above
// the watermark, and the others are read together, a round trip for each 250.
func (l *Line) Glance(ctx context.Context, name string, asks []Ask) []Answer {
	answers := make([]Answer, len(asks))
	r, b, err := l.room(ctx, name)
	var open []question
	var of []int // the answer each of them belongs to
	for i, a := range asks {
		if err != nil {
			answers[i].Err = err
			continue
		}
		p, bad := l.verify(name, a.Token)
		if bad != nil {
			answers[i].Err = bad
			continue
		}
		if a.Seen.Equal(b.at) && p.run >= b.view.Run && b.knows(b.current(p), r.markOf(p.score).Load()) && l.vouched(b, a.Token, p) {
			answers[i].Same = true
			continue
		}
		q := question{b: b, r: r, t: a.Token, told: a.Told, p: p}
		done, bad := l.ask(&q, &answers[i].View)
		answers[i].Err = bad
		if bad == nil && !done {
			open, of = append(open, q), append(of, i)
		}
	}
	for from := 0; from < len(open); from += glanceChunk {
		to := min(from+glanceChunk, len(open))
		l.read(ctx, r, b, open[from:to], of[from:to], answers)
	}
	return answers
}

func (l *Line) read(ctx context.Context, r *room, b *board, open []question, of []int, answers []Answer) {
	places := make([]place, len(open))
	for i := range open {
		places[i] = open[i].p
	}
	found, err := l.lookUp(ctx, r, b, places...)
	for i := range open {
		q, a := &open[i], &answers[of[i]]
		if err != nil {
			a.Err = l.answer(q, &a.View, standing{}, false, err)
			continue
		}
		st, recovering := found[i], b.view.Recovering
		if st.status == Expired { // ended, or forgotten: rare, and asked for one by one
			var cause error
			st, recovering, cause = l.find(ctx, r, b, q.t, q.p)
			a.Err = l.answer(q, &a.View, st, recovering, cause)
			continue
		}
		l.tokens.check(q.t, b.inc)
		a.Err = l.answer(q, &a.View, st, recovering, nil)
	}
}

// Moves is told, without waiting for anybody, after each step of calls and each look
// at the boards: what was told of a place may not be true any more. One receiver only.
func (l *Line) Moves() <-chan struct{} { return l.moves }

func (l *Line) moved() {
	select {
	case l.moves <- struct{}{}:
	default:
	}
}
