package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"usher/admission/pass"
)

// memory is what this edge knows of Redis' memory of a room: which one it is, and the
// marks it was answered (lua/memory.lua). One that shows less has forgotten something.
type memory struct {
	mu    sync.Mutex
	inc   int64
	mark  int64                   // the highest answered; of anotherMemory, that two were
	given [markWindow / 64]uint64 // bit n%markWindow: mark n was answered, for the last marks
}

const (
	// markWindow is how many marks back one that comes twice is known. More calls than
	// that are never under way (queueMost and the pool of connections).
	markWindow = 1 << 14
	// anotherMemory is a mark that no memory shows: the next script begins a recovery.
	anotherMemory = 1 << 52
)

// remember notes a reply's incarnation and mark; one without either says nothing. A memory
// gives each mark once, so the same one again comes from another that has forgotten the
// first: calls that were under way when it took over could not bear witness of it.
func (m *memory) remember(inc, mark int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if inc < m.inc || inc == 0 || mark == 0 {
		return
	}
	if inc > m.inc {
		m.inc, m.mark, m.given = inc, mark-1, [markWindow / 64]uint64{}
	}
	switch {
	case m.mark == anotherMemory || mark <= m.mark-markWindow:
		return
	case mark > m.mark:
		for n := max(m.mark+1, mark-markWindow+1); n <= mark; n++ {
			m.given[n%markWindow/64] &^= 1 << (n % 64)
		}
		m.mark = mark
	case m.given[mark%markWindow/64]>>(mark%64)&1 == 1:
		m.mark = anotherMemory
		return
	}
	m.given[mark%markWindow/64] |= 1 << (mark % 64)
}

// seen is what a witness says.
func (m *memory) seen() (inc, mark int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inc, m.mark
}

// witness is what a script compares the memory with (lua/memory.lua). It must be made
// before the script is sent: what is learnt meanwhile may be newer than the script saw.
func (l *Line) witness(r *room) string {
	inc, mark := r.memory.seen()
	return fmt.Sprintf("%d|%d|%d|%d|%s", inc, mark, r.floor.Load(), micros(l.hold()), l.id)
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
