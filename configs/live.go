package configs

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Live is the configuration in force; Get never blocks and may be asked for
// every request.
type Live struct {
	src    Source
	now    atomic.Pointer[Config]
	digest string // of the files last looked at; only Watch's goroutine uses it
}

// NewLive reads the source for the first time.
func NewLive(src Source) (*Live, error) {
	c, digest, err := load(src)
	if err != nil {
		return nil, err
	}
	l := &Live{src: src, digest: digest}
	l.now.Store(c)
	return l, nil
}

// Fixed is a Live that never changes, for a configuration made in memory.
func Fixed(c Config) *Live {
	l := &Live{}
	l.now.Store(&c)
	return l
}

// Get is the configuration in force. It must not be changed.
func (l *Live) Get() *Config { return l.now.Load() }

// Watch looks at the files every so often until ctx ends and swaps in what
// changed. A configuration with a problem is refused whole and logged once; the
// old one stays in force. changed is called after a swap.
func (l *Live) Watch(ctx context.Context, every time.Duration, log *slog.Logger, changed func(*Config)) error {
	if l.src.File == "" {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if l.reload(log) {
				changed(l.Get())
			}
		}
	}
}

// reload reports whether a new configuration is in force.
func (l *Live) reload(log *slog.Logger) bool {
	next, digest, err := load(l.src)
	if digest == l.digest {
		return false
	}
	l.digest = digest
	if err != nil {
		log.Error("the changed configuration is refused; the old one stays in force", "file", l.src.File, "err", err)
		return false
	}
	old := l.Get()
	live, restart := Changed(old, next)
	l.now.Store(next)
	if len(restart) > 0 {
		log.Warn("some changed settings count only after a restart", "keys", restart)
	}
	log.Info("configuration reloaded", "keys", live)
	return true
}
