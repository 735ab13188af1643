package queue

import (
	"context"
	"errors"

	"usher/queue/limits"
)

// Allow charges one try of a kind ("move") in a room to an address and its block,
// all edges together: for what a program could guess. nil: try it;
// *limits.RefusedError: not now; ErrUnknownRoom, ErrStale. It is one call of Redis,
// so it belongs in front of what asks Redis anyway, and of nothing else.
func (l *Line) Allow(ctx context.Context, room, what, addr string) error {
	if _, _, err := l.room(ctx, room); err != nil {
		return err
	}
	err := limits.NewLimiter(l.rdb, l.opts.Guesses).Allow(ctx, room, what, addr)
	if r := (*limits.RefusedError)(nil); errors.As(err, &r) {
		l.refusedToll(room, err)
		return err
	}
	if err != nil {
		return storeError("allow", err)
	}
	return nil
}
