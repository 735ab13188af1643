package booking

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// One statement, so one transaction: a room never opens without a line in the
// audit log. SKIP LOCKED leaves a room that another process opens, or an
// operator changes, at this moment to whoever has it, or to the next turn.
const sqlOpenDue = `
	WITH due AS (
		SELECT room_id, state, version,
		       CASE WHEN opens_at <= clock_timestamp()
		            THEN CASE WHEN mode = 'draw' AND drawn_at IS NULL THEN 'drawing' ELSE 'open' END
		            ELSE 'gathering' END AS next
		  FROM room
		 WHERE (state IN ('scheduled', 'gathering') AND opens_at <= clock_timestamp())
		    OR (state = 'scheduled' AND mode = 'draw' AND gathers_at <= clock_timestamp())
		 ORDER BY room_id FOR UPDATE SKIP LOCKED
	), moved AS (
		UPDATE room r SET state = due.next, updated_at = clock_timestamp(),
		       version = GREATEST(r.version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
		  FROM due WHERE r.room_id = due.room_id
		RETURNING r.room_id, due.state AS was, due.version AS was_version, r.state, r.version, r.rate_per_minute, r.cap
	), logged AS (
		INSERT INTO audit_log (actor, action, subject, detail)
		SELECT 'schedule', 'room.change', 'room:' || room_id, jsonb_build_object(
			'before', jsonb_build_object('state', was, 'ratePerMinute', rate_per_minute, 'cap', cap, 'version', was_version),
			'after', jsonb_build_object('state', state, 'ratePerMinute', rate_per_minute, 'cap', cap, 'version', version))
		  FROM moved
	)
	SELECT room_id, was, state FROM moved ORDER BY room_id`

// RoomStep is one change of state that the schedule made.
type RoomStep struct{ ID, From, To string }

// OpenDue moves the rooms whose time has come, by the database's clock: to
// gathering, to drawing, or open (roomstates.go). It answers what it moved; the
// audit log names "schedule" as the actor. Any number of processes may call it as
// often as they like: a room moves once. Whoever calls it late makes up for it, and a
// room of mode draw whose gathering was slept through is drawn among nobody.
func (rs *Rooms) OpenDue(ctx context.Context) ([]RoomStep, error) {
	rows, _ := rs.pool.Query(ctx, sqlOpenDue)
	steps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[RoomStep])
	if err != nil {
		return nil, fmt.Errorf("booking: move rooms that are due: %w", err)
	}
	return steps, nil
}
