package booking

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// strangerPause is how long a request waits before it looks again at a row
	// that another transaction has locked.
	strangerPause = 10 * time.Millisecond
	// laneLockTimeout bounds the wait for a limit row that somebody else keeps; the
	// step is then done again one request at a time, and only its owner waits.
	laneLockTimeout = 250 * time.Millisecond
	reconnectPause  = 200 * time.Millisecond
	// replanEvery is how long a plan is kept: the tables grow from nothing to full
	// within minutes, faster than the server's own statistics follow.
	replanEvery = time.Second
)

// pending is one request in a lane.
type pending struct {
	ctx       context.Context //nolint:containedctx // the caller's; only asked whether it still waits
	take      *takeRequest
	arrived   time.Time
	deadline  time.Time
	notBefore time.Time
	state     atomic.Int32 // waiting → working, or waiting → given up
	done      chan takeResult
}

const (
	waiting int32 = iota
	working
	givenUp
)

// lane is one worker: a bounded queue and one connection. A step carries as many
// requests as are disjoint; while it commits, the next ones gather.
type lane struct {
	office *Office
	n      int
	queue  chan *pending
	depth  atomic.Int64
	conn   *pgx.Conn
	plan   time.Time // when the connection's plans were dropped last
	stats  laneStats
	closed chan struct{} // the worker has stopped
	once   sync.Once
}

func newLane(o *Office, n int) *lane {
	return &lane{office: o, n: n, queue: make(chan *pending, o.opts.LaneQueue), closed: make(chan struct{})}
}

// laneOf gives a scope its lane, so that all showtimes under one limit share it.
func (o *Office) laneOf(scope string) *lane {
	h := fnv.New32a()
	_, _ = h.Write([]byte(scope))
	return o.lanes[int(h.Sum32()%uint32(len(o.lanes)))]
}

// do queues r and waits for its outcome. It returns ErrBusy at once when the
// queue is full, and at the deadline when r was never worked. A caller that goes
// away leaves a step that has begun alone: the same fan finds the hold again.
func (l *lane) do(ctx context.Context, r *takeRequest, deadline time.Time) (takeResult, error) {
	if l.depth.Add(1) > int64(cap(l.queue)) {
		l.depth.Add(-1)
		l.stats.shed.Add(1)
		l.office.metrics.shed.Inc()
		return takeResult{}, ErrBusy
	}
	p := &pending{ctx: ctx, take: r, arrived: time.Now(), deadline: deadline, done: make(chan takeResult, 1)}
	l.queue <- p // never blocks: depth bounds what is in it
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case res := <-p.done:
		return res, res.err
	case <-l.closed:
	case <-timer.C:
	case <-ctx.Done():
	}
	if p.state.CompareAndSwap(waiting, givenUp) {
		return takeResult{}, errors.Join(ErrBusy, ctx.Err())
	}
	// It is being worked: its answer is near, and guessing would be wrong.
	last := time.NewTimer(l.office.opts.HoldDeadline + time.Second)
	defer last.Stop()
	select {
	case res := <-p.done:
		return res, res.err
	case <-last.C:
		return takeResult{}, ErrUnavailable
	}
}

// run works the queue until ctx ends.
func (l *lane) run(ctx context.Context) error {
	defer l.once.Do(func() { close(l.closed) })
	defer l.disconnect(ctx)
	pick := newPicker(l.office.opts.BatchMax)
	var line []*pending
	for {
		var ok bool
		if line, ok = l.gather(ctx, line); !ok {
			l.refuse(line)
			return nil
		}
		var step []*pending
		step, line = pick.pick(l.drop(line), time.Now())
		if len(step) == 0 {
			continue
		}
		if again := l.step(ctx, step); len(again) > 0 {
			line = append(again, line...)
		}
	}
}

// gather takes what is queued; it blocks only while there is nothing to work.
// It returns false when ctx has ended.
func (l *lane) gather(ctx context.Context, line []*pending) ([]*pending, bool) {
	if ctx.Err() != nil {
		return line, false
	}
	now := time.Now()
	wait := time.Duration(-1) // for ever
	for _, p := range line {
		if d := p.notBefore.Sub(now); wait < 0 || d < wait {
			wait = max(d, 0)
		}
	}
	if wait != 0 {
		var pause <-chan time.Time
		if wait > 0 {
			t := time.NewTimer(wait)
			defer t.Stop()
			pause = t.C
		}
		select {
		case <-ctx.Done():
			return line, false
		case p := <-l.queue:
			line = append(line, p)
		case <-pause:
		}
	}
	for {
		select {
		case p := <-l.queue:
			line = append(line, p)
		default:
			return line, true
		}
	}
}

// drop forgets what nobody waits for any more.
func (l *lane) drop(line []*pending) []*pending {
	now := time.Now()
	kept := line[:0]
	for _, p := range line {
		switch {
		case p.state.Load() == givenUp:
			l.depth.Add(-1)
		case !p.deadline.After(now) || p.ctx.Err() != nil:
			l.answer(p, takeResult{err: ErrBusy})
		default:
			kept = append(kept, p)
		}
	}
	clear(line[len(kept):])
	return kept
}

// step works one batch and answers it; what a stranger's lock kept from being
// decided is returned, to be first in the next.
func (l *lane) step(ctx context.Context, batch []*pending) (again []*pending) {
	claimed := batch[:0]
	for _, p := range batch {
		if !p.state.CompareAndSwap(waiting, working) {
			l.depth.Add(-1)
			continue
		}
		claimed = append(claimed, p)
	}
	if len(claimed) == 0 {
		return nil
	}
	if err := l.connect(ctx); err != nil {
		l.office.log.Warn("a lane has no connection", "lane", l.n, "err", err)
		for _, p := range claimed {
			p.notBefore = time.Now().Add(reconnectPause)
			p.state.Store(waiting)
		}
		return claimed
	}
	start := time.Now()
	results := l.work(ctx, claimed)
	l.stats.observe(l.office.metrics, claimed, start, time.Now())
	for i, p := range claimed {
		if results[i].outcome == "locked" {
			p.notBefore = time.Now().Add(strangerPause)
			p.state.Store(waiting)
			again = append(again, p)
			continue
		}
		l.answer(p, results[i])
	}
	return again
}

func (l *lane) answer(p *pending, r takeResult) {
	l.depth.Add(-1)
	p.done <- r
}

func (l *lane) refuse(line []*pending) {
	for {
		select {
		case p := <-l.queue:
			line = append(line, p)
			continue
		default:
		}
		break
	}
	for _, p := range line {
		l.answer(p, takeResult{err: ErrBusy})
	}
}

// full reports whether the lane would refuse one more request.
func (l *lane) full() bool { return l.depth.Load() >= int64(cap(l.queue)) }
