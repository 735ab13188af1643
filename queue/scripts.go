package queue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/queue/limits"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// A script is one verb. head.lua opens each of them.
type script struct {
	name string
	*redis.Script
}

var (
	joinScript     = mustScript("join", limits.Lua)
	callScript     = mustScript("call", mustLua("share"))
	claimScript    = mustScript("claim")
	leaveScript    = mustScript("leave")
	releaseScript  = mustScript("release")
	reportScript   = mustScript("report")
	settingsScript = mustScript("settings")
	boardScript    = mustScript("board")
	drawScript     = mustScript("draw")
	entriesScript  = mustScript("entries")
	revokeScript   = mustScript("revoke")
	dropScript     = mustScript("drop")
	restoreScript  = mustScript("restore")
	visitsScript   = mustScript("visits")
	resumeScript   = mustScript("resume")
	recoveryScript = mustScript("recovery")
	valveScript    = mustScript("valve")
	moveCodeScript = mustScript("movecode")
	moveScript     = mustScript("move")

	allScripts = []script{
		joinScript, callScript, claimScript, leaveScript, releaseScript, reportScript, settingsScript, boardScript,
		drawScript, entriesScript, revokeScript, dropScript, restoreScript, visitsScript, resumeScript, recoveryScript,
		valveScript, moveCodeScript, moveScript,
	}
)

// mustScript puts a verb together: the number of a room's own keys (what a verb
// brings besides stands behind them), head.lua, memory.lua, what else it calls, and itself.
func mustScript(name string, libs ...string) script {
	core := fmt.Sprintf("local core = %d\n", len(roomKeys))
	return script{name: name, Script: redis.NewScript(core + mustLua("head") + mustLua("memory") + strings.Join(libs, "") + mustLua(name))}
}

func mustLua(name string) string {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(text)
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

// away are the replies of a Redis that cannot serve at the moment. Any other
// refusal (wrong type, a script's own mistake) is a bug here, and is not hidden.
var away = map[string]bool{
	"READONLY": true, "OOM": true, "LOADING": true, "MASTERDOWN": true, "CLUSTERDOWN": true, "TRYAGAIN": true,
	"MOVED": true, "ASK": true, "BUSY": true, "NOREPLICAS": true, "MISCONF": true, "UNBLOCKED": true, "EXECABORT": true,
}

// storeError is ErrStale for a Redis that does not answer or cannot serve now.
func storeError(what string, err error) error {
	var refusal redis.Error
	if errors.As(err, &refusal) {
		code, rest, _ := strings.Cut(refusal.Error(), " ")
		if !away[code] && !(code == "ERR" && strings.HasPrefix(rest, "max number of clients")) {
			return fmt.Errorf("queue: %s: %w", what, err)
		}
	}
	return fmt.Errorf("%w: %s: %w", ErrStale, what, err)
}

// run executes a verb on a room. A cold script cache (restart, failover, SCRIPT
// FLUSH) is filled on the way: Run falls back from the digest to the text.
func (l *Line) run(ctx context.Context, s script, keys []string, args ...any) (any, error) {
	reply, err := s.Run(ctx, l.rdb, keys, args...).Result()
	return l.replied(s, reply, err)
}

// replied counts and translates what a script call came to.
func (l *Line) replied(s script, reply any, err error) (any, error) {
	if err != nil && !errors.Is(err, redis.Nil) {
		l.metrics.scriptErrors.WithLabelValues(s.name).Inc()
		return nil, storeError(s.name, err)
	}
	return reply, nil
}

// runList is run for the scripts that answer a list.
func (l *Line) runList(ctx context.Context, s script, keys []string, args ...any) ([]any, error) {
	reply, err := l.run(ctx, s, keys, args...)
	return asList(s, reply, err)
}

// runTogether is runList for what fans do by the thousand: under pressure calls share
// round trips. Each room has its own: in a cluster their nodes fail apart.
func (l *Line) runTogether(ctx context.Context, r *room, s script, keys []string, args ...any) ([]any, error) {
	reply, err := r.together.run(ctx, s, keys, args...)
	return asList(s, reply, err)
}

func asList(s script, reply any, err error) ([]any, error) {
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
