// Package rounds runs a step for each of many things, round after round, so that one
// whose store is silent keeps no other waiting.
package rounds

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Rounds are for things that may lie on different nodes, of which one is silent while
// the others answer: a step that takes long goes on aside and is not begun again
// meanwhile, and after a failure nobody waits for that thing until a step of it has
// succeeded. Set the fields before the first round; the rest is ready when zero. One
// round at a time.
type Rounds[K comparable] struct {
	Width    int           // steps that a round has under way at once, while it waits
	Grace    time.Duration // how long a round waits for its slowest step
	Patience time.Duration // when a step's context ends

	mu    sync.Mutex
	each  map[K]*steps
	aside sync.WaitGroup // steps under way
}

// steps is what a round remembers of one.
type steps struct {
	busy bool
	err  error // of the last step that ended
}

// Run begins a round. It returns the failures of the last steps that have ended, this
// round's as far as it waited for them.
func (q *Rounds[K]) Run(ctx context.Context, all []K, step func(context.Context, K) error) error {
	late, cancel := context.WithTimeout(ctx, q.Grace)
	defer cancel()
	slots := make(chan struct{}, q.Width)
	var inTime sync.WaitGroup
	for _, k := range all {
		ailing, ok := q.begin(k)
		if !ok {
			continue
		}
		held := false
		if !ailing {
			select {
			case slots <- struct{}{}:
				held = true
			case <-late.Done():
			}
			inTime.Add(1)
		}
		go func() {
			mine, cancel := context.WithTimeout(ctx, q.Patience)
			defer cancel()
			q.end(k, step(mine, k))
			if held {
				<-slots
			}
			if !ailing {
				inTime.Done()
			}
		}()
	}
	done := make(chan struct{})
	go func() { inTime.Wait(); close(done) }()
	select {
	case <-done:
	case <-late.Done():
	}
	return q.errs(all)
}

// begin takes a step up; it is not ok while the last one is still under way.
func (q *Rounds[K]) begin(k K) (ailing, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.each == nil {
		q.each = map[K]*steps{}
	}
	s := q.each[k]
	if s == nil {
		s = &steps{}
		q.each[k] = s
	}
	if s.busy {
		return false, false
	}
	s.busy = true
	q.aside.Add(1)
	return s.err != nil, true
}

func (q *Rounds[K]) end(k K, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.each[k].busy, q.each[k].err = false, err
	q.aside.Done()
}

func (q *Rounds[K]) errs(all []K) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, k := range all {
		errs = append(errs, q.each[k].err)
	}
	return errors.Join(errs...)
}

// Wait returns when no step is under way; no round may begin meanwhile.
func (q *Rounds[K]) Wait() { q.aside.Wait() }
