package booking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

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
	if !refused(err) {
		l.office.log.Error("a lane lost its connection in a step", "lane", l.n, "requests", len(batch), "err", err)
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
	if time.Since(l.plan) > replanEvery {
		_, _ = l.conn.Exec(ctx, "DISCARD PLANS") // a failure shows in the step
		l.plan = time.Now()
	}
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

// refused: the server answered with an error and has undone the step. A FATAL one
// ends the connection: what became of the step is then as unknown as without it.
func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized != "FATAL" && pg.SeverityUnlocalized != "PANIC"
}

// failure is what a caller is told of an error of the database's.
func (l *lane) failure(ctx context.Context, err error) error {
	if !refused(err) {
		l.disconnect(ctx)
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	switch sqlState(err) {
	case "55P03", "57014", "40P01", "40001": // lock or statement timeout, deadlock, serialization: nothing was done
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return fmt.Errorf("booking: take: %w", err)
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
