package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// silences is a cluster with one node that accepts calls and answers none: all of some
// rooms.
type silences struct {
	rooms []string
	on    atomic.Bool
}

func (s *silences) hits(cmd redis.Cmder) bool {
	if !s.on.Load() {
		return false
	}
	words := fmt.Sprint(cmd.Args()...)
	for _, room := range s.rooms {
		if strings.Contains(words, "{"+room+"}") {
			return true
		}
	}
	return false
}

func (s *silences) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *silences) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if s.hits(cmd) {
			<-ctx.Done()
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		return next(ctx, cmd)
	}
}

func (s *silences) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if s.hits(cmd) {
				<-ctx.Done()
				for _, cmd := range cmds {
					cmd.SetErr(ctx.Err())
				}
				return ctx.Err()
			}
		}
		return next(ctx, cmds)
	}
}

// In a cluster a node may be silent while the others answer. More rooms than a round
// takes at once lie on it, and the fans of its rooms wait for it by the hundred; the
// room on another node is called at its rate, and its fans join.
func TestRoomsOfASilentNodeKeepNoOtherWaiting(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	node := &silences{}
	rdb.AddHook(node)
	l := newLine(t, rdb)
	for range 3 * roundWidth {
		node.rooms = append(node.rooms, openRoom(t, l, 60_000, 100))
	}
	room := openRoom(t, l, 60_000, 1000)
	silent := join(t, l, node.rooms[0], "silent")
	node.on.Store(true)
	run(t, room, l)
	var waiting sync.WaitGroup
	for i := range 300 {
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), storeTimeout)
			defer cancel()
			if _, err := l.Join(ctx, node.rooms[0], Fan{ID: fmt.Sprint("stuck-", i)}); !errors.Is(err, ErrStale) {
				t.Errorf("joined at a silent node: %v", err)
			}
		})
	}
	// One fan after the other, as each is called in the round after they joined. Rounds
	// that wait for 24 silent rooms would take six seconds.
	start := time.Now()
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), storeTimeout/2)
		v, err := l.Join(ctx, room, Fan{ID: fmt.Sprint("fan-", i)})
		if err != nil {
			t.Fatalf("beside a silent node: %v", err)
		}
		cancel()
		eventually(t, 10*time.Second, "a fan is called", func() bool {
			return status(t, l, room, v.Token).Status != Waiting
		})
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("twelve rounds of calls took %s", took)
	}
	waiting.Wait()
	if v := l.own(node.rooms[0]).board.Load(); v.view.Called != 0 {
		t.Errorf("a silent room: %+v", v.view)
	}
	node.on.Store(false)
	report(t, l, node.rooms[0])
	eventually(t, 10*time.Second, "the node's rooms are called again", func() bool {
		return status(t, l, node.rooms[0], silent.Token).Status != Waiting
	})
}
