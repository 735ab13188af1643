package queue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is one verb. head.lua opens each of them.
type script struct {
	name string
	*redis.Script
}

var (
	joinScript     = mustScript("join")
	callScript     = mustScript("call")
	claimScript    = mustScript("claim")
	leaveScript    = mustScript("leave")
	releaseScript  = mustScript("release")
	reportScript   = mustScript("report")
	settingsScript = mustScript("settings")
	boardScript    = mustScript("board")

	allScripts = []script{
		joinScript, callScript, claimScript, leaveScript, releaseScript, reportScript, settingsScript, boardScript,
	}
)

func mustScript(name string) script {
	head, err := luaFiles.ReadFile("lua/head.lua")
	if err != nil {
		panic(err) // the file is embedded
	}
	body, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return script{name: name, Script: redis.NewScript(string(head) + string(body))}
}

// loadScripts puts every verb into Redis' cache, so that the first fan pays for
// no compilation.
func (l *Line) loadScripts(ctx context.Context) error {
	for _, s := range allScripts {
		if err := s.Load(ctx, l.rdb).Err(); err != nil {
			return fmt.Errorf("queue: load %s.lua: %w", s.name, err)
		}
	}
	return nil
}

// run executes a verb on a room. A cold script cache (restart, failover, SCRIPT
// FLUSH) is filled on the way: Run falls back from the digest to the text.
func (l *Line) run(ctx context.Context, s script, keys []string, args ...any) (any, error) {
	reply, err := s.Run(ctx, l.rdb, keys, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		l.metrics.scriptErrors.WithLabelValues(s.name).Inc()
		return nil, fmt.Errorf("queue: %s: %w", s.name, err)
	}
	return reply, nil
}

// runList is run for the scripts that answer a list.
func (l *Line) runList(ctx context.Context, s script, keys []string, args ...any) ([]any, error) {
	reply, err := l.run(ctx, s, keys, args...)
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("queue: %s: the reply is %T, not a list", s.name, reply)
	}
	return list, nil
}

// micros is how the scripts take durations.
func micros(d time.Duration) int64 { return d.Microseconds() }
