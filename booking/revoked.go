package booking

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// revokedEvery is how often a process asks whether anything was revoked. Takes and
	// confirms do not depend on it: their statements look for themselves.
	revokedEvery = 400 * time.Millisecond
	// obeyEvery is how often the visits of revoked fans are looked for without news: a
	// session that was being opened while its pass was revoked ends by this.
	obeyEvery = 15 * time.Second
)

const (
	// The sum, not the highest: every raise changes it, in whatever order they commit.
	sqlRevokedStamp = `SELECT COALESCE(sum(revocation_version), 0)::text FROM room`
	sqlRevokedSet   = `
		SELECT r.room_id, r.revocation_version, COALESCE(x.kind, ''), COALESCE(x.subject, ''), COALESCE(x.granted_before, 'epoch')
		  FROM room r LEFT JOIN revocation x ON x.lifted_at IS NULL AND (x.room_id IS NULL OR x.room_id = r.room_id)`
)

// revokedCache is what this process knows to be revoked, by room. Readers take the
// whole set by one load; it is swapped, never changed.
type revokedCache struct {
	set atomic.Pointer[revokedSet] // nil before the first reading
	mu  sync.Mutex                 // one reading at a time
	// kick wakes the loop: an order was given in this process.
	kick chan struct{}
}

func newRevokedCache() *revokedCache { return &revokedCache{kick: make(chan struct{}, 1)} }

type revokedSet struct {
	stamp string
	rooms map[string]*Revoked
	any   bool
}

func (c *revokedCache) room(id string) *Revoked {
	if set := c.set.Load(); set != nil {
		return set.rooms[id]
	}
	return nil
}

// Revoked is what is in force for a room, as of half a second ago at most; nil while
// nobody could look. Not to be written to.
func (o *Office) Revoked(room string) *Revoked { return o.revoked.room(room) }

// refuses tells whether the session is revoked, by memory.
func (o *Office) refuses(s Session) bool {
	return o.revoked.room(s.Room).Refuses(s.Customer, s.PlaceID, s.JTI, s.GrantedAt)
}

// lookRevoked reads the set when its stamp has changed; news tells whether it had.
func (o *Office) lookRevoked(ctx context.Context) (news bool, err error) {
	o.revoked.mu.Lock()
	defer o.revoked.mu.Unlock()
	next := &revokedSet{rooms: map[string]*Revoked{}}
	if err := o.pool.QueryRow(ctx, sqlRevokedStamp).Scan(&next.stamp); err != nil {
		return false, fmt.Errorf("booking: revocations: %w", err)
	}
	if old := o.revoked.set.Load(); old != nil && old.stamp == next.stamp {
		return false, nil
	}
	rows, _ := o.pool.Query(ctx, sqlRevokedSet)
	var room, kind, subject string
	var version int64
	var before time.Time
	_, err = pgx.ForEachRow(rows, []any{&room, &version, &kind, &subject, &before}, func() error {
		r := next.rooms[room]
		if r == nil {
			r = &Revoked{Version: version, Customers: map[string]bool{}, Places: map[string]bool{}, Passes: map[string]bool{}}
			next.rooms[room] = r
		}
		next.any = next.any || kind != ""
		switch kind {
		case RevokeCustomer:
			r.Customers[subject] = true
		case RevokePlace:
			r.Places[subject] = true
		case RevokePass:
			r.Passes[subject] = true
		case RevokeEverybody:
			if before.After(r.Before) {
				r.Before = before.UTC()
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("booking: revocations: %w", err)
	}
	// Should an order have come between the two readings, the set has it and the stamp
	// has not: the next look reads it once more.
	o.revoked.set.Store(next)
	return true, nil
}

// obey looks at once, and has the loop end the visits. A failure is no failure of the
// order's: it is in force, and the loop tries on.
func (o *Office) obey(ctx context.Context) {
	if _, err := o.lookRevoked(ctx); err != nil {
		o.log.Warn("a revocation is in force; this process learns of it by its next look", "err", err)
	}
	select {
	case o.revoked.kick <- struct{}{}:
	default:
	}
}

// revokedLoop keeps the set fresh and ends the visits of those it names.
func (o *Office) revokedLoop(ctx context.Context) error {
	tick := time.NewTicker(revokedEvery)
	defer tick.Stop()
	failing, owing := false, true
	last := time.Now()
	for {
		look, cancel := context.WithTimeout(ctx, 5*time.Second)
		news, err := o.lookRevoked(look)
		cancel()
		owing = owing || news || time.Since(last) > obeyEvery
		if set := o.revoked.set.Load(); err == nil && owing && set != nil {
			last = time.Now()
			if set.any {
				err = o.endRevoked(ctx)
			}
			owing = err != nil
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			o.log.Warn("revocations cannot be read or carried out; takes and confirms look for themselves", "err", err)
		case err == nil && failing:
			o.log.Info("revocations are carried out again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-o.revoked.kick:
			owing = true
		case <-tick.C:
		}
	}
}
