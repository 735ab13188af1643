package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"usher/booking"
	"usher/booking/payment"
	"usher/configs"
	"usher/internal/basehttp"
)

// Options are what an App is made of.
type Options struct {
	Role   string
	Config *configs.Live
	Log    *slog.Logger
	// Level, when set, follows log.level of a reloaded configuration.
	Level *slog.LevelVar
	// Prepare, when set, runs once the listeners are open and before the stores
	// are: it may start the stores, and names them.
	Prepare func(ctx context.Context) (Stores, error)
}

// Stores says where the stores are and how they are stopped; empty addresses
// leave the configuration's.
type Stores struct {
	PostgresURL, RedisURL string
	Migrated              func(ctx context.Context, pool *pgxpool.Pool) error // runs before any part is built
	Stop                  func(ctx context.Context) error
	Passing               bool // this Redis is gone with the process: it need not keep a file
}

// App is one process in one role.
type App struct {
	opts     Options
	parts    []part
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *httpMetrics
	keys     *keyring
	passes   atomic.Pointer[passCheck] // set once built, in a box office

	servers map[string]*basehttp.Server
	addrs   map[string]net.Addr
	started map[string]bool // listeners whose Serve runs
	stores  Stores
	pool    *pgxpool.Pool
	rdb     redis.UniversalClient
	rooms   *booking.Rooms
	office  *booking.Office
	desk    *payment.Desk
	bridge  atomic.Pointer[bridge] // set once built; the admin API tells it of changes

	leave func() // sends the fans of open streams elsewhere; nil without an edge

	ready    atomic.Bool
	teardown teardown
	fatal    chan error
}

// New checks the role; it starts nothing.
func New(o Options) (*App, error) {
	parts, err := partsOf(o.Role)
	if err != nil {
		return nil, err
	}
	if o.Config == nil {
		return nil, errors.New("app: a configuration is needed")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	a := &App{
		opts: o, parts: parts, log: o.Log.With("role", o.Role),
		servers: map[string]*basehttp.Server{}, addrs: map[string]net.Addr{}, started: map[string]bool{},
		fatal: make(chan error, 1),
	}
	a.registry, a.metrics = newRegistry()
	return a, nil
}

// Run starts the process, waits for ctx or for a part that failed, and stops it.
func (a *App) Run(ctx context.Context) error {
	if err := a.Start(ctx); err != nil {
		return err
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-a.fatal:
	}
	return errors.Join(err, a.Stop())
}

// Start brings the process up, or leaves nothing behind.
func (a *App) Start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{a.listen, a.openStores, a.serveAdmin, a.build, a.serve} {
		if err := step(ctx); err != nil {
			return errors.Join(err, a.Stop())
		}
	}
	a.ready.Store(true)
	a.log.Info("ready", "addrs", a.addrText())
	return nil
}

// Stop takes the process down within shutdown.timeout. Stopping twice is harmless.
func (a *App) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.config().Shutdown.Timeout)
	defer cancel()
	start := time.Now()
	err := a.teardown.unwind(ctx)
	a.log.Info("stopped", "ms", time.Since(start).Milliseconds(), "err", err)
	if err != nil {
		return fmt.Errorf("app: stop: %w", err)
	}
	return nil
}

// Addr is what a listener's address became; "" for one this role has not.
func (a *App) Addr(listener string) string {
	if addr := a.addrs[listener]; addr != nil {
		return addr.String()
	}
	return ""
}

func (a *App) config() *configs.Config { return a.opts.Config.Get() }

func (a *App) addrText() map[string]string {
	out := map[string]string{}
	for name := range a.addrs {
		out[name] = a.Addr(name)
	}
	return out
}

// spawn runs a loop until the teardown reaches it. A loop that ends by itself
// ends the process: half a role is worse than none.
func (a *App) spawn(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var result error
	go func() {
		defer close(done)
		err := run(ctx)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				result = err
			}
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		select {
		case a.fatal <- fmt.Errorf("app: %s: %w", name, err):
		default:
		}
	}()
	a.teardown.push(name, func(stop context.Context) error {
		cancel()
		select {
		case <-done:
			return result
		case <-stop.Done():
			return stop.Err()
		}
	})
}

// build makes every part, in the table's order.
func (a *App) build(context.Context) error {
	for _, p := range a.parts {
		if err := p.build(a); err != nil {
			return fmt.Errorf("app: %s: %w", p.name, err)
		}
	}
	a.spawn("configuration watch", func(ctx context.Context) error {
		return a.opts.Config.Watch(ctx, 2*time.Second, a.log, a.reloaded)
	})
	return nil
}

// reloaded applies what a changed configuration changes by itself; the rest of
// the live keys are read where they are used.
func (a *App) reloaded(c *configs.Config) {
	if a.opts.Level != nil {
		_ = a.opts.Level.UnmarshalText([]byte(c.Log.Level)) // checked by configs
	}
}
