package booking

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// holdDelayOver is how far back first holds count for the median: long enough for
	// a quiet hall to have some, short enough to follow a crowd of another kind.
	holdDelayOver = 10 * time.Minute
	// holdDelayEvery is how often it is taken: it moves by minutes.
	holdDelayEvery   = 15 * time.Second
	holdDelayTimeout = 5 * time.Second
)

// The sessions that live, and those that ended lately, by their two partial indexes;
// their holds by hold_by_session. A visit without a hold says nothing yet.
const sqlHoldDelay = `
	WITH visit AS (
		SELECT room_id, session_id, created_at FROM session WHERE ended_at IS NULL AND expires_at > now() - interval '1 minute'
		UNION ALL
		SELECT room_id, session_id, created_at FROM session
		 WHERE ended_at IS NOT NULL AND ended_at > now() - make_interval(secs => $1::int)
	)
	SELECT v.room_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM h.first - v.created_at))
	  FROM visit v CROSS JOIN LATERAL (SELECT min(created_at) AS first FROM hold WHERE session_id = v.session_id) h
	 WHERE h.first > now() - make_interval(secs => $1::int) AND h.first >= v.created_at
	 GROUP BY v.room_id`

// holdDelays keeps each room's median time from a visit's beginning to its first
// hold, as it was last taken: the dead time of the valve.
type holdDelays struct {
	mu    sync.Mutex
	rooms map[string]time.Duration
}

// of is the room's median; 0 when nobody has held anything lately.
func (d *holdDelays) of(room string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rooms[room]
}

// holdDelayLoop takes the medians until ctx ends, and twenty times more seldom than
// that costs. When it fails the last ones stand.
func (o *Office) holdDelayLoop(ctx context.Context) error {
	failing := false
	for {
		start := time.Now()
		err := o.takeHoldDelays(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			o.log.Warn("the time to a first hold cannot be taken; the last one stands", "err", err)
		}
		failing = err != nil
		pause := time.NewTimer(max(20*time.Since(start), holdDelayEvery))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

func (o *Office) takeHoldDelays(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holdDelayTimeout)
	defer cancel()
	rows, _ := o.pool.Query(ctx, sqlHoldDelay, int(holdDelayOver/time.Second))
	rooms := map[string]time.Duration{}
	var room string
	var seconds float64
	if _, err := pgx.ForEachRow(rows, []any{&room, &seconds}, func() error {
		rooms[room] = time.Duration(seconds * float64(time.Second))
		return nil
	}); err != nil {
		return fmt.Errorf("booking: time to the first hold: %w", err)
	}
	o.delays.mu.Lock()
	o.delays.rooms = rooms
	o.delays.mu.Unlock()
	return nil
}
