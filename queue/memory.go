package queue

import (
	"context"
	"fmt"
	"time"

	"usher/admission/pass"
)

// seen is the highest this edge has seen of Redis' memory of a room: which one it is,
// and how far its beat had come. A memory that shows less has forgotten something.
type seen struct{ inc, beat int64 }

// remember notes a reply's incarnation and beat.
func (r *room) remember(inc, beat int64) {
	for {
		old := r.seen.Load()
		if old != nil && (inc < old.inc || inc == old.inc && beat <= old.beat) {
			return
		}
		if r.seen.CompareAndSwap(old, &seen{inc: inc, beat: beat}) {
			return
		}
	}
}

// witness is what a script compares the memory with (lua/memory.lua). It must be made
// before the script is sent: what is learnt meanwhile may be newer than the script saw.
func (l *Line) witness(r *room) string {
	var s seen
	if w := r.seen.Load(); w != nil {
		s = *w
	}
	return fmt.Sprintf("%d|%d|%d|%d", s.inc, s.beat, r.floor.Load(), micros(l.hold()))
}

// hold is how long nobody is admitted after a loss: a pass granted in the last moment
// before it, up to half a second ahead and rounded up to a second, may still be
// exchanged until it expires, with the leeway, and its session seen a moment later.
func (l *Line) hold() time.Duration {
	return l.opts.PassLife + pass.Leeway + unusedMargin + 2*time.Second
}

// forgot is called with the last board of one memory and the first of the next.
func (l *Line) forgot(r *room, old, b *board) {
	if b.lost == 0 || old.inc == 0 {
		return
	}
	if !old.view.Recovering { // of two losses in a row the first board is the whole one
		r.older.Store(old)
	}
	l.metrics.recoveries.WithLabelValues(r.name).Inc()
	l.log.Error("redis forgot a part of a line; nobody is called until it is put back",
		"room", r.name, "incarnation", b.inc, "for_at_least", l.hold())
}

// Recovery is what a room's memory is worth.
type Recovery struct {
	Incarnation int64     // which memory this is; 0: the room has no settings yet
	On          bool      // nobody is admitted until Resume
	At          time.Time // Redis' clock
}

// Recovery reads what the room's memory is worth. What is read from Postgres after
// this call was true after its At.
func (l *Line) Recovery(ctx context.Context, name string) (Recovery, error) {
	r := l.own(name)
	reply, err := l.runList(ctx, recoveryScript, r.keys)
	if err != nil {
		return Recovery{}, err
	}
	return Recovery{Incarnation: number(reply, 0), On: number(reply, 1) == 1, At: instant(number(reply, 2))}, nil
}

// Resume ends the recovery of the incarnation, if its hold is over. The caller has
// told all visits of before (PutServed), and a report whose sessions were read after
// since. It answers whether the recovery has ended by this call.
func (l *Line) Resume(ctx context.Context, name string, incarnation int64, since time.Time) (bool, error) {
	return l.resume(ctx, name, incarnation, since, false)
}

// First ends the recovery of the incarnation at once: it is the room's first, and
// nothing can have been forgotten.
func (l *Line) First(ctx context.Context, name string, incarnation int64) error {
	_, err := l.resume(ctx, name, incarnation, time.Time{}, true)
	return err
}

func (l *Line) resume(ctx context.Context, name string, incarnation int64, since time.Time, first bool) (bool, error) {
	r := l.own(name)
	reply, err := l.run(ctx, resumeScript, r.keys, incarnation, unixMicros(since), first, micros(l.opts.ClaimWindow))
	if err != nil {
		return false, err
	}
	ended, ok := reply.(int64)
	if ok && ended == 1 {
		return true, l.refresh(ctx, r)
	}
	return false, nil
}

// Served is one visit that began, living or over.
type Served struct {
	PlaceID string    // 32 hex digits
	Began   time.Time // by the database's clock
}

// PutServed tells the line which places were used, so that none of them is put back.
// The caller pages: a call takes up to some thousands.
func (l *Line) PutServed(ctx context.Context, name string, served []Served) error {
	visits := make([]visit, 0, len(served))
	for _, s := range served {
		if m, ok := memberOfID(s.PlaceID); ok {
			visits = append(visits, visit{member: m, began: unixMicros(s.Began)})
		}
	}
	return l.putVisits(ctx, l.own(name), visits)
}

// A visit as visits.lua takes it; jti "" when it is over.
type visit struct {
	member string
	jti    string
	began  int64 // µs; 0: not known
}

// putVisits tells them, a bounded number a script run.
func (l *Line) putVisits(ctx context.Context, r *room, visits []visit) error {
	for len(visits) > 0 {
		chunk := visits[:min(len(visits), releaseChunk)]
		visits = visits[len(chunk):]
		args := append(make([]any, 0, 1+3*len(chunk)), micros(l.opts.SlotLease))
		for _, v := range chunk {
			args = append(args, v.member, v.jti, v.began)
		}
		reply, err := l.run(ctx, visitsScript, r.keys, args...)
		if err != nil {
			return err
		}
		if n, ok := reply.(int64); ok && n > 0 {
			l.metrics.visitsRestored.WithLabelValues(r.name).Add(float64(n))
		}
	}
	return nil
}
