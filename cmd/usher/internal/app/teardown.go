package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// teardown is the stack of what must be undone, filled as things come to exist.
type teardown struct {
	mu    sync.Mutex
	steps []teardownStep
}

type teardownStep struct {
	name string
	undo func(ctx context.Context) error
}

func (t *teardown) push(name string, undo func(ctx context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, teardownStep{name, undo})
}

// unwind undoes everything, the youngest first, and joins the errors. A step
// that ignores ctx is left behind when ctx ends, so that one stuck store does
// not keep the rest from closing. A second call finds nothing to do.
func (t *teardown) unwind(ctx context.Context) error {
	t.mu.Lock()
	steps := t.steps
	t.steps = nil
	t.mu.Unlock()
	var errs []error
	for i := len(steps) - 1; i >= 0; i-- {
		done := make(chan error, 1)
		go func() { done <- steps[i].undo(ctx) }()
		select {
		case err := <-done:
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", steps[i].name, err))
			}
		case <-ctx.Done():
			select {
			case err := <-done: // it saw the deadline too
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", steps[i].name, err))
				}
			default:
				errs = append(errs, fmt.Errorf("%s: %w", steps[i].name, ctx.Err()))
			}
		}
	}
	return errors.Join(errs...)
}
