package booking

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	sqlRevokedHolds = `
		SELECT h.hold_id::text FROM hold h JOIN session v ON v.session_id = h.session_id
		 WHERE h.state IN ('OPEN', 'PAYING') AND h.expires_at > clock_timestamp() AND ` + SQLRevokedVisit + `
		 ORDER BY h.showtime_id, h.hold_id LIMIT $1`
	sqlHoldByID = holdColumns + ` WHERE hold_id = $1`
	// Also with a payment page open: money that comes for it goes back (settle), so the
	// seats need not wait for that page to close.
	sqlCloseRevokedHold = `
		UPDATE hold h SET state = 'RELEASED'
		 WHERE h.showtime_id = $1 AND h.hold_id = $2 AND h.state IN ('OPEN', 'PAYING')`

	// Two statements, like the sweeper's: the second sees what a take that was under
	// way at the first has committed.
	sqlRevokedSessions = `
		SELECT v.session_id::text FROM session v WHERE v.ended_at IS NULL AND ` + SQLRevokedVisit + `
		 LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED`
	sqlEndRevoked = `
		UPDATE session s SET ended_at = clock_timestamp(), end_reason = 'revoked'
		 WHERE s.session_id = ANY($1::text[]::uuid[]) AND s.ended_at IS NULL
		   AND NOT EXISTS (SELECT FROM hold h WHERE h.session_id = s.session_id
		                      AND h.state IN ('OPEN', 'PAYING') AND h.expires_at > clock_timestamp())
		RETURNING session_id::text`
)

// endRevoked releases the holds of revoked fans and ends their sessions, in batches,
// until there are none. Any number of processes may do it at once.
func (o *Office) endRevoked(ctx context.Context) error {
	for {
		rows, _ := o.pool.Query(ctx, sqlRevokedHolds, sweepBatch)
		holds, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("booking: holds of the revoked: %w", err)
		}
		for _, id := range holds {
			if err := o.releaseRevoked(ctx, id); err != nil {
				return err
			}
		}
		if len(holds) < sweepBatch {
			break
		}
	}
	for {
		found, ended, err := o.endRevokedSessions(ctx)
		if err != nil {
			return fmt.Errorf("booking: sessions of the revoked: %w", err)
		}
		for _, id := range ended {
			o.visits.forget(id)
		}
		// The rest are locked, or got a hold again by a step that was stuck: next turn.
		if found < sweepBatch || len(ended) == 0 {
			return nil
		}
	}
}

func (o *Office) endRevokedSessions(ctx context.Context) (found int, ended []string, err error) {
	err = InTx(ctx, o.pool, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, sqlRevokedSessions, sweepBatch)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if found = len(ids); err != nil || found == 0 {
			return err
		}
		rows, _ = tx.Query(ctx, sqlEndRevoked, ids)
		ended, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return found, ended, err
}

func (o *Office) releaseRevoked(ctx context.Context, id string) error {
	h, err := scanHold(o.pool.QueryRow(ctx, sqlHoldByID, id))
	if err != nil {
		return fmt.Errorf("booking: hold of the revoked: %w", err)
	}
	var freed bool
	err = InTx(ctx, o.pool, func(tx pgx.Tx) error {
		freed, err = closeHoldTx(ctx, tx, h, sqlCloseRevokedHold)
		return err
	})
	if err != nil && !errors.Is(err, ErrHoldNotOpen) { // not open: it was confirmed before the order
		return err
	}
	if freed {
		o.maps.apply(h.ShowtimeID, h.Seats, seatFree, 0)
	}
	return nil
}
