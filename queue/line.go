package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"usher/admission/pass"
	"usher/internal/rounds"
	"usher/queue/limits"
)

// Bounds of what is remembered and of what one script run does.
const (
	exactRanks     = 1000   // scores at the head shipped one by one
	sampleRanks    = 256    // score→rank points behind them
	shippedGone    = 2000   // places that left, shipped to the edges
	keptGone       = 10_000 // … and kept, to answer `left`
	keptMissed     = 50_000 // missed calls that can still be forgiven
	loopBound      = 200    // places a script run moves
	runsPerTick    = 20     // script runs of one room in one tick, while there is more to do
	maxRenewals    = 5      // of one expired pass, while no report frees its slot
	inviteAhead    = 10 * time.Second
	staleAfter     = 5 * time.Second // a board older than this says so
	releaseChunk   = 500             // slots a release run takes
	tokenCacheSize = 100_000
	storeTimeout   = 2 * time.Second // of one background call to Redis
	roundWidth     = 8               // rooms that a round of looks, calls or draws serves at once
)

// Options configure a Line; only PlaceSecrets is needed.
type Options struct {
	Log          *slog.Logger  // default slog.Default()
	PlaceSecrets [][]byte      // at least one, each ≥ 32 bytes; the first signs, all verify
	ClaimWindow  time.Duration // how long a call stands; default 120 s
	Tick         time.Duration // how often an edge calls; default 200 ms
	BoardEvery   time.Duration // how often a board is read; default 1 s
	ReportTTL    time.Duration // a report older than this stops calls; default 5 s
	PassLife     time.Duration // default pass.Life; ≥ 2 s
	SlotLease    time.Duration // default pass.SlotLease; longer than PassLife
	Registerer   prometheus.Registerer

	// Guesses is how often one address may try a kind of thing ("move", "entries"), see Allow;
	// asked at each try. Default: 30 a minute, 30 at once.
	Guesses func(what string) limits.Rate
}

func (o *Options) validate() error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	for d, fallback := range map[*time.Duration]time.Duration{
		&o.ClaimWindow: 2 * time.Minute, &o.Tick: 200 * time.Millisecond, &o.BoardEvery: time.Second,
		&o.ReportTTL: 5 * time.Second, &o.PassLife: pass.Life, &o.SlotLease: pass.SlotLease,
	} {
		if *d == 0 {
			*d = fallback
		}
		if *d < 0 {
			return errors.New("queue: a duration is negative")
		}
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry() // metrics nobody reads
	}
	if o.Guesses == nil {
		o.Guesses = func(string) limits.Rate { return limits.Rate{PerMinute: 30, Burst: 30} }
	}
	if len(o.PlaceSecrets) == 0 {
		return errors.New("queue: a place secret is needed")
	}
	for i, s := range o.PlaceSecrets {
		if len(s) < 32 {
			return fmt.Errorf("queue: place secret %d has %d bytes, needs 32", i+1, len(s))
		}
	}
	if o.PassLife < 2*time.Second || o.SlotLease <= o.PassLife {
		return fmt.Errorf("queue: pass life %s must be 2s or more and shorter than the slot lease %s", o.PassLife, o.SlotLease)
	}
	return nil
}

// Line is the waiting lines of all rooms, seen from one edge. It is safe for
// concurrent use. Any number of Lines may work on the same Redis.
type Line struct {
	rdb     redis.UniversalClient
	id      string // of this Line among the edges (lua/memory.lua)
	opts    Options
	log     *slog.Logger
	tokens  *tokenCache
	metrics *metrics
	roomsMu sync.RWMutex
	rooms   map[string]*room // by name; under roomsMu
	listed  atomic.Pointer[roomList]
	once    singleflight.Group // one look for a new room at a time
	moves   chan struct{}

	lists               rounds.Rounds[string] // of the rooms there are
	looks, calls, draws rounds.Rounds[*room]
}

// New checks the options; it starts nothing and asks Redis nothing.
func New(rdb redis.UniversalClient, o Options) (*Line, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	l := &Line{rdb: rdb, id: hex.EncodeToString(id[:]), opts: o, log: o.Log.With("component", "line"), tokens: newTokenCache(tokenCacheSize), rooms: map[string]*room{}, moves: make(chan struct{}, 1)}
	// With the longest pause between two rounds of calls (1.2 ticks) the grace is less than
	// the 2.5 ticks that grants lie ahead: a room whose node is silent leaves no gap in
	// another's rate.
	grace := o.Tick * 5 / 4
	l.lists.Width, l.lists.Grace, l.lists.Patience = 1, grace, storeTimeout
	for _, q := range []*rounds.Rounds[*room]{&l.looks, &l.calls, &l.draws} {
		q.Width, q.Grace, q.Patience = roundWidth, grace, storeTimeout
	}
	l.draws.Patience = drawTimeout
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	l.metrics = m
	return l, nil
}

// ClaimWindow is how long a called fan has to come.
func (l *Line) ClaimWindow() time.Duration { return l.opts.ClaimWindow }

// Run keeps the boards fresh and calls fans, until ctx ends; it returns nil then.
// Trouble with Redis is logged once per spell and waited out.
func (l *Line) Run(ctx context.Context) error {
	if err := l.loadScripts(ctx); err != nil {
		l.log.Warn("scripts not loaded yet; each is sent when it is first needed", "err", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { l.every(ctx, "boards", l.opts.BoardEvery, l.refreshAll); return nil })
	g.Go(func() error { l.every(ctx, "calls", l.opts.Tick, l.callAll); return nil })
	g.Go(func() error { l.every(ctx, "draws", l.opts.Tick, l.drawAll); return nil })
	err := g.Wait()
	l.lists.Wait()
	l.looks.Wait()
	l.calls.Wait()
	l.draws.Wait()
	return err
}

// every runs step about each period, jittered so that many edges do not beat in
// step, and logs when it starts failing and when it works again.
func (l *Line) every(ctx context.Context, name string, period time.Duration, step func(context.Context) error) {
	failing := false
	for {
		err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			l.log.Error("the line cannot be kept for the moment", "step", name, "err", err)
		case err == nil && failing:
			l.log.Info("the line is kept again", "step", name)
		}
		failing = err != nil
		wait := time.Duration(float64(period) * (0.8 + 0.4*mathrand.Float64()))
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
