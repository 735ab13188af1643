package queue

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// refuses is a Redis that answers one thing.
type refuses struct {
	calls
	err error
}

func (r *refuses) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error { cmd.SetErr(r.err); return r.err }
}

func (r *refuses) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, c := range cmds {
			c.SetErr(r.err)
		}
		return r.err
	}
}

type reply string

func (e reply) Error() string { return string(e) }
func (reply) RedisError()     {}

func TestARedisThatCannotServeIsStaleAndABugIsNot(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 1)
	fan := join(t, l, room, "fan")
	for _, c := range []struct {
		err   error
		stale bool
	}{
		{reply("READONLY You can't write against a read only replica."), true},
		{reply("OOM command not allowed when used memory > 'maxmemory'. script: 0a, on @user_script:3."), true},
		{reply("LOADING Redis is loading the dataset in memory"), true},
		{reply("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), true},
		{reply("CLUSTERDOWN The cluster is down"), true},
		{reply("ERR max number of clients reached"), true},
		{redis.ErrPoolTimeout, true},
		{redis.ErrClosed, true},
		{io.EOF, true},
		{context.DeadlineExceeded, true},
		{reply("ERR user_script:9: attempt to perform arithmetic on a nil value script: 0a, on @user_script:9."), false},
		{reply("WRONGTYPE Operation against a key holding the wrong kind of value"), false},
	} {
		broken := dial(t, "")
		broken.AddHook(&refuses{err: c.err})
		b := newLine(t, broken)
		b.own(room).board.Store(l.own(room).board.Load()) // it knew the room before
		_, joined := b.Join(t.Context(), room, Fan{ID: "x"})
		_, seen := b.Status(t.Context(), room, fan.Token, 0)
		_, claimed := b.Claim(t.Context(), room, fan.Token)
		for verb, err := range map[string]error{
			"join": joined, "status": seen, "claim": claimed, "leave": b.Leave(t.Context(), room, fan.Token),
			"report":   b.PutReport(t.Context(), room, Report{}),
			"settings": b.PutSettings(t.Context(), Settings{Room: room, Mode: "fifo", State: "open", Run: 1, Version: 9}),
			"boards":   b.refreshAll(t.Context()), "calls": b.callAll(t.Context()),
		} {
			if verb == "status" && err == nil {
				continue // the last numbers are an answer
			}
			if errors.Is(err, ErrStale) != c.stale || !errors.Is(err, c.err) {
				t.Errorf("%s with %q: %v", verb, c.err, err)
			}
		}
	}
}

// The real thing: a Redis that is full, and one that became a replica.
func TestAFullRedisAndAReplicaAreStale(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	room := openRoom(t, l, 60, 1)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	maxMemory := func(bytes string) {
		t.Helper()
		if err := rdb.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	maxMemory("1")
	if _, err := l.Join(t.Context(), room, Fan{ID: "new"}); !errors.Is(err, ErrStale) {
		t.Errorf("joined a full Redis: %v", err)
	}
	maxMemory("0")
	bad := script{name: "join", Script: redis.NewScript(`return nil + 1`)}
	if _, err := l.run(t.Context(), bad, l.own(room).keys); err == nil || errors.Is(err, ErrStale) {
		t.Errorf("a script's mistake: %v", err)
	}
	if err := rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := l.Join(ctx, room, Fan{ID: "new"}); !errors.Is(err, ErrStale) {
		t.Errorf("joined a replica: %v", err)
	}
	if _, err := l.Claim(ctx, room, fan.Token); !errors.Is(err, ErrStale) {
		t.Errorf("admitted by a replica: %v", err)
	}
}
