package booking

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/admission/pass"
)

// SlotRef names one admission as the line knows it.
type SlotRef struct {
	PlaceID, JTI string
	Began        time.Time // when the session began
}

// LaneReport tells how busy this process' lanes are: the worst lane's mean wait
// and mean step, what waits in all of them, and what they refused since the last
// report.
type LaneReport struct {
	QueueWait, Batch time.Duration
	Depth, Shed      int
	// HoldDelay is the median time from a visit's beginning to its first hold, in this
	// room and lately; 0: nobody has held anything.
	HoldDelay time.Duration
}

// RoomReport is what the line is told of one room.
type RoomReport struct {
	Room Room
	At   time.Time // the database's clock, read before all else in the report
	Seq  int64     // grows with every report of any process
	// Total is the seats of the room's showtimes that are still on sale (onSaleFor);
	// 0 means that there are none or that nobody has been able to count them yet.
	Total int
	// Available are those neither sold nor under a live hold. Both are of the last
	// count that came through, some moments ago.
	Available int
	SoldOut   bool // every seat is booked: nothing will come back by an expiry
	Living    []SlotRef
	Ended     []SlotRef // in the last two minutes
	Revoked   []SlotRef // of those, what was ended because it was revoked
	Lanes     LaneReport
}

// endedFor is how long an ended session is reported; the line must hear of each
// at least once, over a bridge that may have missed some turns.
const endedFor = 2 * time.Minute

const (
	// onSaleFor is how long after its start a showtime's seats are still counted: box
	// offices sell into the first act. Without it last year's unsold seats would be
	// told as left, and the count would read them every few seconds for ever.
	onSaleFor = 6 * time.Hour
	// countTimeout bounds one count of what is left.
	countTimeout = 10 * time.Second
)

const (
	sqlReportRooms = `SELECT ` + roomColumns + ` FROM room ORDER BY room_id`

	// Two halves, so that each has its own partial index. $1 and $2 as in sqlLivesUntil.
	// A visit whose time is up has ended although no sweep has written it down yet: in
	// neither list it would look like a pass that nobody used, and its fan come back.
	sqlReportSessions = `
		SELECT s.room_id, s.place_id, s.jti, s.created_at, ` + sqlLivesUntil + ` <= clock_timestamp(), false FROM session s
		 WHERE s.ended_at IS NULL
		UNION ALL
		SELECT room_id, place_id, jti, created_at, true, end_reason = 'revoked' FROM session
		 WHERE ended_at IS NOT NULL AND ended_at > now() - make_interval(secs => $3::int)`

	sqlReportLeft = `
		SELECT t.room_id, count(*),
		       count(*) FILTER (WHERE s.status = 'AVAILABLE' OR (s.status = 'HELD' AND s.hold_expires_at <= clock_timestamp())),
		       bool_and(s.status = 'BOOKED')
		  FROM show_seat s JOIN showtime t USING (showtime_id)
		 WHERE t.starts_at > clock_timestamp() - make_interval(secs => $1::int) GROUP BY t.room_id`
)

// Reports is everything the bridge ships, one report a room. Call it about once
// a second from one place: it also drains the lanes' means. What is left is counted
// by Run, beside: a slow count must not keep the line from being told who is inside.
func (o *Office) Reports(ctx context.Context) ([]RoomReport, error) {
	var at time.Time
	// First, so that a session the report does not list began after At.
	if err := o.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at); err != nil {
		return nil, fmt.Errorf("booking: report: %w", err)
	}
	rows, _ := o.pool.Query(ctx, sqlReportRooms)
	rooms, err := pgx.CollectRows(rows, scanRoom)
	if err != nil {
		return nil, fmt.Errorf("booking: report rooms: %w", err)
	}
	left := o.left.last()
	reports := make([]RoomReport, len(rooms))
	byRoom := make(map[string]*RoomReport, len(rooms))
	lanes := o.laneReport()
	for i, r := range rooms {
		reports[i] = RoomReport{
			Room: r, At: at.UTC(), Seq: at.UnixMicro(), Lanes: lanes,
			Total: left[r.ID].total, Available: left[r.ID].available, SoldOut: left[r.ID].soldOut,
		}
		reports[i].Lanes.HoldDelay = o.delays.of(r.ID)
		byRoom[r.ID] = &reports[i]
	}
	if err := o.reportSessions(ctx, byRoom); err != nil {
		return nil, err
	}
	return reports, nil
}

func (o *Office) reportSessions(ctx context.Context, byRoom map[string]*RoomReport) error {
	rows, _ := o.pool.Query(ctx, sqlReportSessions, int(pass.LongestSession/time.Second), int(sessionMargin/time.Second),
		int(endedFor/time.Second))
	var room string
	var ref SlotRef
	var ended, revoked bool
	_, err := pgx.ForEachRow(rows, []any{&room, &ref.PlaceID, &ref.JTI, &ref.Began, &ended, &revoked}, func() error {
		switch r := byRoom[room]; {
		case r == nil: // made between the two reads
		case ended:
			r.Ended = append(r.Ended, ref)
			if revoked {
				r.Revoked = append(r.Revoked, ref)
			}
		default:
			r.Living = append(r.Living, ref)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("booking: report sessions: %w", err)
	}
	return nil
}

func (o *Office) laneReport() LaneReport {
	var r LaneReport
	for _, l := range o.lanes {
		wait, batch := l.stats.drain()
		r.QueueWait, r.Batch = max(r.QueueWait, wait), max(r.Batch, batch)
		r.Depth += int(l.depth.Load())
		r.Shed += int(l.stats.shed.Swap(0))
	}
	return r
}

type leftInRoom struct {
	total, available int
	soldOut          bool
}

// leftCounter keeps the last count of what is left. It counts while it is asked,
// and as often as that is cheap: the count reads every seat, so its result is kept
// for twenty times as long as it took.
type leftCounter struct {
	asked chan struct{} // somebody has read the count since the last one

	mu    sync.Mutex
	rooms map[string]leftInRoom
}

func newLeftCounter() *leftCounter { return &leftCounter{asked: make(chan struct{}, 1)} }

// last is the last count that came through, nil before the first; never written to again.
func (c *leftCounter) last() map[string]leftInRoom {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rooms
}

// countLeftLoop counts when somebody has asked, until ctx ends.
func (o *Office) countLeftLoop(ctx context.Context) error {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.left.asked:
		}
		start := time.Now()
		err := o.countLeft(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			o.log.Warn("the seats that are left cannot be counted; the last count stands", "err", err)
		}
		failing = err != nil
		wait := max(20*time.Since(start), 900*time.Millisecond)
		if failing {
			wait = 2 * time.Second // its length says nothing about what a count costs
		}
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

func (o *Office) countLeft(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	rows, _ := o.pool.Query(ctx, sqlReportLeft, int(onSaleFor/time.Second))
	rooms := map[string]leftInRoom{}
	var id string
	var n leftInRoom
	if _, err := pgx.ForEachRow(rows, []any{&id, &n.total, &n.available, &n.soldOut}, func() error {
		rooms[id] = n
		return nil
	}); err != nil {
		return fmt.Errorf("booking: report what is left: %w", err)
	}
	o.left.mu.Lock()
	o.left.rooms = rooms
	o.left.mu.Unlock()
	return nil
}
