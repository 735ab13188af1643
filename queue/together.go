package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Bounds of what is sent together.
const (
	flights   = 4    // round trips of this kind under way at once
	batchMost = 128  // calls one of them carries: some two milliseconds of Redis
	queueMost = 4096 // calls that wait for one; more are refused at once
)

// errBusy is for a call that nobody will send soon.
var errBusy = fmt.Errorf("%w: too many calls of the line wait already", ErrStale)

// together sends script calls in one pipeline when they come faster than round trips:
// the first goes at once and alone, by its caller's own context; those that come while
// all flights are under way make the next batch. So it needs neither a timer nor a
// setting, costs nothing when there is little to do, and a round trip carries more the
// more there is to do.
type together struct {
	l *Line

	mu      sync.Mutex
	flying  int
	waiting []*call
}

// call is one script call that waits to be sent.
type call struct {
	ctx    context.Context // the caller's: a call whose caller went away is not sent
	script script
	keys   []string
	args   []any
	done   chan struct{} // closed when reply and err are there
	reply  any
	err    error // as the client made it
}

// run is Line.run by way of a batch. What is in args must not change any more: a
// caller who is tired of waiting leaves them behind.
func (t *together) run(ctx context.Context, s script, keys []string, args ...any) (any, error) {
	t.mu.Lock()
	if t.flying < flights { // then nobody waits either
		t.flying++
		t.mu.Unlock()
		defer t.next() //nolint:contextcheck // the next batch is of other callers
		return t.l.run(ctx, s, keys, args...)
	}
	if len(t.waiting) >= queueMost {
		t.mu.Unlock()
		return nil, errBusy
	}
	c := &call{ctx: ctx, script: s, keys: keys, args: args, done: make(chan struct{})}
	t.waiting = append(t.waiting, c)
	t.mu.Unlock()
	select {
	case <-c.done:
		return t.l.replied(s, c.reply, c.err)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %s: %w", ErrStale, s.name, ctx.Err())
	}
}

// next hands a flight that has landed to those who wait, or ends it.
func (t *together) next() {
	if batch := t.take(); batch != nil {
		go func() {
			for ; batch != nil; batch = t.take() {
				t.fly(batch)
			}
		}()
	}
}

// take is the next batch; nil, and the flight is over, when nobody waits.
func (t *together) take() []*call {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.waiting) > 0 {
		n := min(len(t.waiting), batchMost)
		batch := make([]*call, 0, n)
		for _, c := range t.waiting[:n] {
			if c.err = c.ctx.Err(); c.err != nil {
				close(c.done) // its caller has gone
				continue
			}
			batch = append(batch, c)
		}
		if t.waiting = t.waiting[n:]; len(t.waiting) == 0 {
			t.waiting = nil
		}
		if len(batch) > 0 {
			return batch
		}
	}
	t.flying--
	return nil
}

// fly sends a batch and tells each caller its own outcome. A batch has a time limit of
// its own: the shortest patience among its callers must not end it for all.
func (t *together) fly(batch []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	t.l.metrics.batches.Inc()
	t.l.metrics.batched.Add(float64(len(batch)))
	cold := t.send(ctx, batch, (*call).byDigest)
	if len(cold) > 0 { // the cache was emptied: the first call of each room and verb brings the text
		texts := map[string]bool{}
		cold = t.send(ctx, cold, func(c *call, pipe redis.Pipeliner) *redis.Cmd {
			if of := c.script.name + " " + c.keys[0]; !texts[of] {
				texts[of] = true
				return c.script.Eval(ctx, pipe, c.keys, c.args...)
			}
			return c.byDigest(pipe)
		})
	}
	for _, c := range cold { // emptied again meanwhile
		c.reply, c.err = c.script.Run(ctx, t.l.rdb, c.keys, c.args...).Result()
		close(c.done)
	}
}

func (c *call) byDigest(pipe redis.Pipeliner) *redis.Cmd {
	return c.script.EvalSha(c.ctx, pipe, c.keys, c.args...)
}

// send makes one round trip; it answers all calls but those whose script the store did
// not know, which it returns. Each has its own reply or error: a bad one spoils no other.
func (t *together) send(ctx context.Context, batch []*call, as func(*call, redis.Pipeliner) *redis.Cmd) (cold []*call) {
	pipe := t.l.rdb.Pipeline()
	cmds := make([]*redis.Cmd, len(batch))
	for i, c := range batch {
		cmds[i] = as(c, pipe)
	}
	_, _ = pipe.Exec(ctx) // it fails as its first failing command does; each is looked at
	for i, c := range batch {
		c.reply, c.err = cmds[i].Result()
		if c.err != nil && strings.HasPrefix(c.err.Error(), "NOSCRIPT") {
			cold = append(cold, c)
			continue
		}
		close(c.done)
	}
	return cold
}
