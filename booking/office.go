package booking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"usher/admission/pass"
)

// Options configure an Office. Verifier and SessionSecret are needed; the rest
// has the defaults named here.
type Options struct {
	Log           *slog.Logger
	Verifier      *pass.Verifier
	SessionSecret []byte        // signs session tokens; at least 32 bytes
	Lanes         int           // workers that take seats, one connection each; default 2
	LaneQueue     int           // most requests waiting in one lane; default 1024
	BatchMax      int           // most requests one commit carries; default 128
	HoldDeadline  time.Duration // a hold request is answered by then; default 2 s
	TakesPerMin   int           // successful holds a minute, customer and limit scope; default 5, < 0: unlimited
	SweepEvery    time.Duration // default 15 s; < 0: never (expiry does not depend on it)
	SessionLife   time.Duration // default 15 min; a live hold extends it, up to pass.LongestSession
	MapEvery      time.Duration // how old a seat map's statuses may be; default 1 s
	Registerer    prometheus.Registerer
}

func (o *Options) complete() error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("component", "booking")
	setDefault(&o.Lanes, 2)
	setDefault(&o.LaneQueue, 1024)
	setDefault(&o.BatchMax, 128)
	setDefault(&o.TakesPerMin, 5)
	setDefault(&o.HoldDeadline, 2*time.Second)
	setDefault(&o.SweepEvery, 15*time.Second)
	setDefault(&o.SessionLife, 15*time.Minute)
	setDefault(&o.MapEvery, time.Second)
	var errs []error
	if o.Verifier == nil {
		errs = append(errs, errors.New("a pass verifier is needed"))
	}
	if len(o.SessionSecret) < 32 {
		errs = append(errs, fmt.Errorf("the session secret has %d bytes, at least 32 are needed", len(o.SessionSecret)))
	}
	if o.Lanes < 1 || o.LaneQueue < 1 || o.BatchMax < 1 {
		errs = append(errs, errors.New("lanes, lane queue and batch size must be positive"))
	}
	if o.HoldDeadline < 0 || o.SessionLife < 0 || o.SessionLife > pass.LongestSession {
		errs = append(errs, fmt.Errorf("the hold deadline must be positive and a session at most %s", pass.LongestSession))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("booking: options: %w", err)
	}
	return nil
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Office is the box office: it reads what is on sale, opens sessions and takes
// seats. It is safe for concurrent use; any number of offices may work on one
// database.
type Office struct {
	pool    *pgxpool.Pool
	opts    Options
	log     *slog.Logger
	metrics *metrics
	lanes   []*lane
	catalog *catalogCache
	maps    *mapCache
	visits  *sessionCache
	left    *leftCounter
	delays  holdDelays
	revoked *revokedCache
	// fenceWait is how long an order waits for those who sell, as Postgres reads it.
	fenceWait string
	// choosing counts the calls that pick seats for their fan at this moment.
	choosing atomic.Int64
}

// New builds an office over pool; it starts nothing. Holds are taken only while
// Run runs: before, they wait in their lane until their deadline.
func New(pool *pgxpool.Pool, o Options) (*Office, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	of := &Office{pool: pool, opts: o, log: o.Log, metrics: m}
	of.catalog = newCatalogCache(pool, o.MapEvery)
	of.maps = newMapCache(of)
	of.visits = newSessionCache()
	of.left = newLeftCounter()
	of.revoked, of.fenceWait = newRevokedCache(), "400ms"
	for i := range o.Lanes {
		of.lanes = append(of.lanes, newLane(of, i))
	}
	return of, nil
}

// Rooms reads and changes the waiting rooms of the office's database.
func (o *Office) Rooms() *Rooms { return NewRooms(o.pool) }

// Run works the lanes, the sweeper, revocations and the counts of the report until ctx ends;
// it returns nil then.
func (o *Office) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, l := range o.lanes {
		g.Go(func() error { return l.run(ctx) })
	}
	if o.opts.SweepEvery > 0 {
		g.Go(func() error { return o.sweepLoop(ctx) })
	}
	g.Go(func() error { return o.maps.evictLoop(ctx) })
	g.Go(func() error { return o.countLeftLoop(ctx) })
	g.Go(func() error { return o.holdDelayLoop(ctx) })
	g.Go(func() error { return o.revokedLoop(ctx) })
	return g.Wait()
}
