package booking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/admission/pass"
)

// sweepBatch bounds one statement of the sweeper.
const sweepBatch = 500

const (
	// sqlSweepHolds records holds whose time is over and frees the seats that are
	// still theirs. Nothing depends on it: an expired hold counts as free in every
	// statement. SKIP LOCKED throughout, so any number of sweepers, takes and
	// confirms pass each other without waiting, in whatever order they lock.
	// now() and not clock_timestamp(): only the former can bound an index scan; the
	// statement is its own transaction.
	sqlSweepHolds = `
		WITH due AS MATERIALIZED (
		    SELECT showtime_id, hold_id, seats FROM hold
		     WHERE state IN ('OPEN', 'PAYING') AND expires_at <= now()
		     ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
		), seat AS MATERIALIZED (
		    SELECT due.showtime_id, due.hold_id, s.seat_code
		      FROM due CROSS JOIN LATERAL unnest(due.seats) AS w(seat_code)
		     CROSS JOIN LATERAL (SELECT seat_code FROM show_seat
		            WHERE showtime_id = due.showtime_id AND seat_code = w.seat_code
		              AND status = 'HELD' AND hold_id = due.hold_id FOR UPDATE SKIP LOCKED) s
		), freed AS (
		    UPDATE show_seat s SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL
		      FROM seat WHERE s.showtime_id = seat.showtime_id AND s.seat_code = seat.seat_code
		       AND s.hold_id = seat.hold_id AND s.status = 'HELD'
		)
		UPDATE hold h SET state = 'EXPIRED' FROM due
		 WHERE h.showtime_id = due.showtime_id AND h.hold_id = due.hold_id`

	// Two statements: the second has a snapshot from after the locks, and so sees the
	// hold of a take that was under way at the first. $1 and $2 as in sqlLivesUntil.
	sqlDueSessions = `
		SELECT s.session_id::text FROM session s
		 WHERE s.ended_at IS NULL AND s.expires_at <= now() AND ` + sqlLivesUntil + ` <= now()
		 LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED`
	sqlSweepSessions = `
		UPDATE session s SET ended_at = clock_timestamp(), end_reason = 'expired'
		 WHERE s.session_id = ANY($3::text[]::uuid[]) AND s.ended_at IS NULL AND ` + sqlLivesUntil + ` <= now()`
)

func (o *Office) sweepLoop(ctx context.Context) error {
	t := time.NewTicker(o.opts.SweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if _, _, err := o.Sweep(ctx); err != nil && !errors.Is(err, context.Canceled) {
				o.log.Warn("the sweeper will try again", "err", err)
			}
		}
	}
}

// Sweep records everything that is over now and returns how many holds and
// sessions it recorded.
func (o *Office) Sweep(ctx context.Context) (holds, sessions int64, err error) {
	for {
		tag, err := o.pool.Exec(ctx, sqlSweepHolds, sweepBatch)
		if err != nil {
			return holds, sessions, fmt.Errorf("booking: sweep holds: %w", err)
		}
		holds += tag.RowsAffected()
		o.metrics.sweptHolds.Add(float64(tag.RowsAffected()))
		if tag.RowsAffected() < sweepBatch {
			break
		}
	}
	for {
		due, ended, err := o.sweepSessions(ctx)
		if err != nil {
			return holds, sessions, fmt.Errorf("booking: sweep sessions: %w", err)
		}
		sessions += ended
		if due < sweepBatch {
			return holds, sessions, nil
		}
	}
}

// sweepSessions ends one batch of those whose time is over; due counts also those
// that turned out to live on.
func (o *Office) sweepSessions(ctx context.Context) (due int, ended int64, err error) {
	longest, margin := int(pass.LongestSession/time.Second), int(sessionMargin/time.Second)
	err = InTx(ctx, o.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, sqlDueSessions, longest, margin, sweepBatch)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if due = len(ids); err != nil || due == 0 {
			return err
		}
		tag, err := tx.Exec(ctx, sqlSweepSessions, longest, margin, ids)
		ended = tag.RowsAffected()
		return err
	})
	return due, ended, err
}
