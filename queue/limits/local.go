package limits

import (
	"sync"
	"time"
)

// localCap bounds the addresses remembered by one Local.
const localCap = 50_000

// Local is GCRA in this process' memory, for what must cost no Redis call. Its
// zero value is not ready; use NewLocal.
type Local struct {
	mu  sync.Mutex
	tat map[string]time.Time
}

// NewLocal remembers nothing yet.
func NewLocal() *Local { return &Local{tat: map[string]time.Time{}} }

// Allow charges one to who; 0 when there is room, else how long until there is.
// When too many are remembered, the ones that are empty again are forgotten, and
// if that is not half of them, all are: too lax for a moment, rather than a memory
// that grows.
func (l *Local) Allow(who string, r Rate, now time.Time) time.Duration {
	if r.PerMinute <= 0 {
		return 0
	}
	spacing, depth := time.Minute/time.Duration(r.PerMinute), time.Minute/time.Duration(r.PerMinute)*time.Duration(max(1, r.Burst))
	l.mu.Lock()
	defer l.mu.Unlock()
	tat := l.tat[who]
	if tat.Before(now) {
		tat = now
	}
	tat = tat.Add(spacing)
	if over := tat.Sub(now) - depth; over > 0 {
		return over
	}
	if len(l.tat) >= localCap {
		l.forget(now)
	}
	l.tat[who] = tat
	return 0
}

func (l *Local) forget(now time.Time) {
	for who, tat := range l.tat {
		if !tat.After(now) {
			delete(l.tat, who)
		}
	}
	if len(l.tat) > localCap/2 { // else the next stranger would pay for this walk again
		clear(l.tat)
	}
}
