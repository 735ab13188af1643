package booking

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// strangerPause is how long a request waits before it looks again at a row
	// that another transaction has locked.
	strangerPause = 10 * time.Millisecond
	// laneLockTimeout bounds the wait for a limit row that somebody else keeps; the
	// step is then done again one request at a time, and only its owner waits.
	laneLockTimeout = 250 * time.Millisecond
	reconnectPause  = 200 * time.Millisecond
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

// work runs one step; when the server refuses it, each request is done alone, so
// that a poisoned one spoils nobody else's.
func (l *lane) work(ctx context.Context, batch []*pending) []takeResult {
	requests := make([]*takeRequest, len(batch))
	for i, p := range batch {
		requests[i] = p.take
	}
	results, err := l.take(ctx, requests)
	if err == nil {
		return results
	}
	results = make([]takeResult, len(batch))
	alone := len(batch) == 1
	for i := range requests {
		one := err
		if !alone && refused(err) {
			var r []takeResult
			if r, one = l.take(ctx, requests[i:i+1]); one == nil {
				results[i] = r[0]
				continue
			}
		}
		results[i] = takeResult{err: l.failure(ctx, one)}
	}
	return results
}

// take runs one step under a deadline of its own: the callers' may be over.
func (l *lane) take(ctx context.Context, requests []*takeRequest) ([]takeResult, error) {
	if err := l.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.office.opts.HoldDeadline+time.Second)
	defer cancel()
	results, err := take(ctx, l.conn, requests, l.office.opts.TakesPerMin)
	if err != nil && pgconn.SafeToRetry(err) { // nothing left this machine: a connection that died while idle
		l.disconnect(ctx)
		if err := l.connect(ctx); err != nil {
			return nil, err
		}
		results, err = take(ctx, l.conn, requests, l.office.opts.TakesPerMin)
	}
	if err != nil {
		return nil, err
	}
	for i, r := range requests {
		if results[i].outcome == "take" {
			l.office.maps.apply(r.showtimeID, r.seats, seatHeld, r.holdTime)
		}
	}
	return results, nil
}

func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg)
}

// failure is what a caller is told of an error of the database's.
func (l *lane) failure(ctx context.Context, err error) error {
	switch sqlState(err) {
	case "":
		l.office.log.Error("a lane lost its connection in a step", "lane", l.n, "err", err)
		l.disconnect(ctx)
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case "55P03", "57014", "40P01", "40001": // lock or statement timeout, deadlock, serialization: nothing was done
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return fmt.Errorf("booking: take: %w", err)
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

// connect opens the lane's connection when it has none. It is not the pool's: a
// full pool must not stop the lanes, nor the lanes' settings reach anybody else.
func (l *lane) connect(ctx context.Context) error {
	if l.conn != nil && !l.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cfg := l.office.pool.Config().ConnConfig.Copy()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("booking: lane: connect: %w", err)
	}
	// The plans of a step must stay index probes whatever the tables' statistics
	// say on the first day of a sale, and need not be made anew for every step.
	settings := fmt.Sprintf(`SET application_name = 'usher-lane-%d'; SET enable_seqscan = off; SET random_page_cost = 1.05;
		SET plan_cache_mode = force_generic_plan; SET lock_timeout = %d; SET statement_timeout = %d;
		SET idle_in_transaction_session_timeout = 10000; SET jit = off`,
		l.n, laneLockTimeout.Milliseconds(), l.office.opts.HoldDeadline.Milliseconds())
	if _, err := conn.Exec(ctx, settings); err != nil {
		_ = conn.Close(ctx)
		return fmt.Errorf("booking: lane: settings: %w", err)
	}
	l.conn = conn
	return nil
}

func (l *lane) disconnect(ctx context.Context) {
	if l.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx)
	l.conn = nil
}

// full reports whether the lane would refuse one more request.
func (l *lane) full() bool { return l.depth.Load() >= int64(cap(l.queue)) }
