package booking

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// servedFor bounds how long a place that was used is told of; the line puts no older
// place back.
const servedFor = 30 * 24 * time.Hour

// Visit is one session that began, living or over.
type Visit struct {
	PlaceID string
	Began   time.Time
}

// FirstMemory reports whether the line's memory of a room (its incarnation) is the
// first there ever was: none other has been recorded, and nobody has been inside. It
// records this one in the audit log first, so that the next one is not. Asked again,
// by whichever process, it answers the same for the same incarnation.
func (o *Office) FirstMemory(ctx context.Context, room string, incarnation int64) (bool, error) {
	const action = "line.memory"
	subject := "room:" + room
	_, err := o.pool.Exec(ctx, `
		INSERT INTO audit_log (actor, action, subject, detail)
		SELECT 'bridge', $1, $2, jsonb_build_object('incarnation', $3::bigint)
		 WHERE NOT EXISTS (SELECT FROM audit_log
		        WHERE subject = $2 AND action = $1 AND (detail->>'incarnation')::bigint = $3)`, action, subject, incarnation)
	if err != nil {
		return false, fmt.Errorf("booking: record the line's memory: %w", err)
	}
	var first bool
	err = o.pool.QueryRow(ctx, `
		SELECT NOT EXISTS (SELECT FROM audit_log
		        WHERE subject = $2 AND action = $1 AND (detail->>'incarnation')::bigint <> $3)
		   AND NOT EXISTS (SELECT FROM session WHERE room_id = $4)`, action, subject, incarnation, room).Scan(&first)
	if err != nil {
		return false, fmt.Errorf("booking: the line's memories: %w", err)
	}
	return first, nil
}

// Served is a page of the room's visits of the last 30 days, at most limit rows of
// the session table from after (its own answer; "" for the first page) on. The last
// page answers next "". Ids are ordered by time (UUIDv7) as far as their processes'
// clocks agree; a session that begins during the reading may be missed, and is in
// the reports. Visits that were revoked are left out: their fans may have the place back.
func (o *Office) Served(ctx context.Context, room, after string, limit int) (visits []Visit, next string, err error) {
	if after == "" {
		after = "00000000-0000-0000-0000-000000000000"
	}
	// The window is of the table's rows, not of the room's: a page's cost is bounded
	// even if the room has few among many.
	rows, _ := o.pool.Query(ctx, `
		WITH page AS (SELECT session_id, room_id, place_id, created_at, end_reason FROM session
		               WHERE session_id > $1::uuid ORDER BY session_id LIMIT $2)
		SELECT session_id::text, room_id = $3 AND created_at > now() - make_interval(secs => $4::int)
		       AND end_reason IS DISTINCT FROM 'revoked', place_id, created_at
		  FROM page ORDER BY session_id`, after, limit, room, int(servedFor/time.Second))
	var id string
	var ours bool
	var v Visit
	n := 0
	if _, err := pgx.ForEachRow(rows, []any{&id, &ours, &v.PlaceID, &v.Began}, func() error {
		n++
		if next = id; ours {
			visits = append(visits, Visit{PlaceID: v.PlaceID, Began: v.Began.UTC()})
		}
		return nil
	}); err != nil {
		return nil, "", fmt.Errorf("booking: served places: %w", err)
	}
	if n < limit {
		next = ""
	}
	return visits, next, nil
}
