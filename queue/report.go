package queue

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/admission/pass"
)

// SlotRef names one visit: the place it was admitted from and its pass.
type SlotRef struct {
	PlaceID string    // 32 hex digits
	JTI     string    // id of the pass
	Began   time.Time // when the session began, by the database's clock; zero: not known
}

// LaneReport is how the booking lanes fare.
type LaneReport struct {
	QueueWait time.Duration `json:"queueWait"` // time a hold waits for its batch
	Batch     time.Duration `json:"batch"`     // time a batch takes
	Depth     int           `json:"depth"`     // requests waiting now
	Shed      int           `json:"shed"`      // refused as busy lately
	// HoldDelay is the median time from a visit's beginning to its first hold in this
	// room; 0: not known.
	HoldDelay time.Duration `json:"holdDelay"`
}

// Report is what Postgres knows about a room at one instant.
type Report struct {
	At        time.Time // database time at which the sessions were read
	Seq       int64     // grows with every report of any process; 0: not numbered, taken as it comes
	Available int       // seats free this second in the room's showtimes: not held, not booked
	Total     int       // seats there are
	SoldOut   bool      // all of them are booked (held ones may come back)
	Living    []SlotRef // every living session
	Ended     []SlotRef // sessions that ended lately
	Revoked   []SlotRef // of those, what the operator ended: their places may be had back, once
	Lanes     LaneReport
}

// unusedMargin is added to a pass' expiry and leeway before a slot without a
// session counts as unused: a session that is being opened in the last moment may
// not be visible in the database yet.
const unusedMargin = 2 * time.Second

// ErrLateReport says that a report was read longer ago than a report lives. What it
// says of ended visits was taken, its freshness was not.
var ErrLateReport = errors.New("queue: the report is late")

// PutReport stamps the room's report with Redis' clock and frees slots: those of
// ended sessions, and those whose pass expired, with a margin, before r.At and of
// which no session lives. A slot that was granted anew or renewed since it was
// read is left alone. A report that is not newer than the last renews no stamp, and
// one that is late neither (ErrLateReport): the clocks of database and Redis are
// compared by their progress from report to report alone. Whoever loses a slot unused finds the place of before by
// joining again, once, as after a missed call.
func (l *Line) PutReport(ctx context.Context, name string, r Report) error {
	rm, _, err := l.room(ctx, name)
	if err != nil {
		return err
	}
	lanes, err := json.Marshal(r.Lanes)
	if err != nil {
		return fmt.Errorf("queue: report: %w", err)
	}
	soldOut := 0
	if r.SoldOut {
		soldOut = 1
	}
	reply, err := l.run(ctx, reportScript, rm.keys, r.Seq, r.Available, r.Total, lanes,
		micros(l.opts.ReportTTL), micros(l.opts.ClaimWindow), soldOut, r.At.UnixMicro())
	if err != nil {
		return err
	}
	slots, recovering, err := l.readSlots(ctx, rm)
	if err != nil {
		return err
	}
	taken, _ := reply.(int64) // 1 taken, 0 not newer, -1 late
	if taken == 1 {
		// Only from news: an older reading may tell of visits that have ended since.
		if err := l.putVisits(ctx, rm, unknownVisits(slots, r, recovering)); err != nil {
			return err
		}
	}
	if err := l.release(ctx, rm, endedSlots(slots, r, rm.revoked.Load())); err != nil {
		return err
	}
	if taken < 0 {
		return fmt.Errorf("%w: room %s, read at %s", ErrLateReport, name, r.At.Format(time.RFC3339Nano))
	}
	return nil
}

// freed is one slot to free, as it was read.
type freed struct {
	member, jti string
	expires     int64
	back        int // whether the place may be had back once: 0 no, 1 if no visit came of it, 2 although one did
}

// endedSlots picks the slots whose visit has ended by the report, and those of which
// no visit can come: booking refuses a revoked pass.
func endedSlots(slots map[string]string, r Report, orders *revokedSet) []freed {
	living, ended, revoked := index(r.Living), index(r.Ended), index(r.Revoked)
	before := r.At.Add(-pass.Leeway - unusedMargin).UnixMicro()
	var out []freed
	for m, text := range slots {
		s := parseSlot(text)
		ref := visitKey{hex.EncodeToString([]byte(m)), s.jti}
		if living[ref] {
			continue
		}
		if used := ended[ref]; used || s.expires < before || orders.slot(ref.placeID, s.jti, s.granted) {
			f := freed{member: m, jti: s.jti, expires: s.expires}
			switch {
			case revoked[ref]:
				f.back = 2
			case !used:
				f.back = 1
			}
			out = append(out, f)
		}
	}
	return out
}

type visitKey struct{ placeID, jti string }

func index(refs []SlotRef) map[visitKey]bool {
	m := make(map[visitKey]bool, len(refs))
	for _, r := range refs {
		m[visitKey{r.PlaceID, r.JTI}] = true
	}
	return m
}

// readSlots reads all slots, and whether a recovery is on, in one instant.
func (l *Line) readSlots(ctx context.Context, r *room) (slots map[string]string, recovering bool, err error) {
	var all *redis.MapStringStringCmd
	var hold *redis.BoolCmd
	_, err = l.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		all, hold = tx.HGetAll(ctx, r.keys[kSlots]), tx.HExists(ctx, r.keys[kState], "hold")
		return nil
	})
	if err != nil {
		return nil, false, storeError("read slots", err)
	}
	return all.Val(), hold.Val(), nil
}

// unknownVisits are those the line must be told of: living ones without a slot, at
// any time, as a loss may be too small to be noticed, and those whose slot is not
// marked as used; and in a recovery those that are over, whose places must not be put back.
func unknownVisits(slots map[string]string, r Report, recovering bool) []visit {
	var out []visit
	for _, ref := range r.Living {
		m, ok := memberOfID(ref.PlaceID)
		text, there := slots[m]
		s := parseSlot(text)
		if known := there && (s.used || s.jti != ref.JTI); ok && !known && ref.JTI != "" {
			out = append(out, visit{member: m, jti: ref.JTI})
		}
	}
	if !recovering {
		return out
	}
	revoked := index(r.Revoked) // their places may be had back
	for _, ref := range r.Ended {
		if m, ok := memberOfID(ref.PlaceID); ok && !ref.Began.IsZero() && !revoked[visitKey{ref.PlaceID, ref.JTI}] {
			out = append(out, visit{member: m, began: unixMicros(ref.Began)})
		}
	}
	return out
}

// release frees the slots, a bounded number a script run.
func (l *Line) release(ctx context.Context, r *room, slots []freed) error {
	for len(slots) > 0 {
		chunk := slots[:min(len(slots), releaseChunk)]
		slots = slots[len(chunk):]
		args := append(make([]any, 0, 1+4*len(chunk)), keptMissed)
		for _, s := range chunk {
			args = append(args, s.member, s.jti, s.expires, s.back)
		}
		reply, err := l.run(ctx, releaseScript, r.keys, args...)
		if err != nil {
			return err
		}
		if n, ok := reply.(int64); ok {
			l.metrics.releases.WithLabelValues(r.name).Add(float64(n))
		}
	}
	return nil
}
