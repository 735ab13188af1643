package queue

import (
	"sync"
	"time"
)

const (
	// keptPromises bounds what an edge remembers of a room: a sample, not a ledger.
	keptPromises = 256
	// promiseEvery spreads the sample over time: of a rush all promises are alike.
	promiseEvery = time.Second
)

// promises are a sample of the waits this edge promised to those who joined by it,
// until their places are called. Redis keeps nothing of them.
type promises struct {
	mu   sync.Mutex
	last time.Time
	open []promised
}

type promised struct {
	score   int64
	at      time.Time
	eta     ETA
	version int64 // of the settings it was made under
}

// made takes a promise into the sample, when there is room and its turn has come.
func (p *promises) made(score int64, eta ETA, version int64, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) >= keptPromises || now.Sub(p.last) < promiseEvery {
		return
	}
	p.last = now
	p.open = append(p.open, promised{score: score, at: now, eta: eta, version: version})
}

// settle tells what became of the promises to the places that are called by now: all
// up to their line's watermark. One made before the operator changed the room is dropped: it
// was true then. What an adaptive valve did is no excuse.
func (p *promises) settle(called func(score int64) bool, version int64, now time.Time, outcome func(string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.open[:0]
	for _, m := range p.open {
		switch wait := now.Sub(m.at); {
		case m.version != version:
		case !called(m.score):
			kept = append(kept, m)
		case wait < m.eta.Low:
			outcome("early")
		case wait > m.eta.High:
			outcome("late")
		default:
			outcome("inside")
		}
	}
	p.open = kept
}

// settlePromises is called after each step of the caller: it knows the watermark
// within a tick, whoever polls when.
func (l *Line) settlePromises(r *room) {
	if b := r.board.Load(); b != nil {
		r.promises.settle(r.called, b.view.Version, time.Now(), func(outcome string) {
			l.metrics.promises.WithLabelValues(r.name, outcome).Inc()
		})
	}
}
