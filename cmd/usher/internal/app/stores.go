package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"usher/booking"
	"usher/booking/schema"
	"usher/configs"
)

// openStores opens what the role's parts need. Postgres must answer and be
// migrated; Redis need not: the box office serves without it, and an edge waits
// for it with its boards stale.
func (a *App) openStores(ctx context.Context) error {
	if a.opts.Prepare != nil {
		s, err := a.opts.Prepare(ctx)
		if s.Stop != nil {
			a.teardown.push("private stores", s.Stop)
		}
		if err != nil {
			return err
		}
		a.stores = s
	}
	var needRedis, needPostgres bool
	for _, p := range a.parts {
		needRedis = needRedis || p.redis
		needPostgres = needPostgres || p.postgres
	}
	if needPostgres {
		if err := a.openPostgres(ctx); err != nil {
			return err
		}
	}
	if needRedis {
		return a.openRedis(ctx)
	}
	return nil
}

func (a *App) openPostgres(ctx context.Context) error {
	c := a.config()
	url := c.Postgres.URL.Reveal()
	if a.stores.PostgresURL != "" {
		url = a.stores.PostgresURL
	}
	pool, err := OpenPool(ctx, url, c.Postgres, "usher-"+a.opts.Role)
	if err != nil {
		return err
	}
	a.pool = pool
	a.teardown.push("postgres", func(context.Context) error { pool.Close(); return nil })
	if err := await(ctx, a.log, "postgres", pool.Ping); err != nil {
		return fmt.Errorf("app: postgres at %s does not answer: %w", configs.StoreURL(url), err)
	}
	before, theirs := time.Now(), time.Time{}
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err == nil {
		warnSkew(a.log, "postgres", theirs, before, time.Now())
	}
	if a.stores.Migrated != nil {
		if err := a.stores.Migrated(ctx, pool); err != nil {
			return err
		}
	} else if err := migrated(ctx, url); err != nil {
		return err
	}
	a.rooms = booking.NewRooms(pool)
	return nil
}

// OpenPool opens a pool as every role uses it. It does not wait for the server.
func OpenPool(ctx context.Context, url string, c configs.Postgres, name string) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		// pgx's message repeats the address, and with it the password.
		return nil, fmt.Errorf("app: the address of postgres (%s) cannot be used", configs.StoreURL(url))
	}
	pc.MaxConns = int32(c.MaxConns)
	pc.MinIdleConns = int32(min(2, c.MaxConns))
	pc.MaxConnIdleTime = 5 * time.Minute
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	p := pc.ConnConfig.RuntimeParams
	p["application_name"] = name
	p["timezone"] = "UTC"
	// The take and the confirm are right under READ COMMITTED and were tested
	// there; a server or a role with another default must not change that.
	p["default_transaction_isolation"] = "read committed"
	p["statement_timeout"] = millis(c.StatementTimeout)
	// A process that hangs in a transaction holds seats' locks.
	p["idle_in_transaction_session_timeout"] = millis(2 * c.StatementTimeout)
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("app: postgres: %w", err)
	}
	return pool, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// migrated refuses to work on a database that lacks a migration of this binary.
func migrated(ctx context.Context, url string) error {
	list, err := schema.List(ctx, url)
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	for _, m := range list {
		if !m.Applied {
			return fmt.Errorf("app: migration %d (%s) is not applied; run: usher migrate up", m.Version, m.Name)
		}
	}
	return nil
}

func (a *App) openRedis(ctx context.Context) error {
	c := a.config()
	url := c.Redis.URL.Reveal()
	if a.stores.RedisURL != "" {
		url = a.stores.RedisURL
	}
	rdb, err := openRedis(c.Redis, url, a.log)
	if err != nil {
		return err
	}
	a.rdb = rdb
	a.teardown.push("redis", func(context.Context) error { return rdb.Close() })
	return checkRedis(ctx, rdb, c.Redis, a.stores.Passing, a.log)
}

// openRedis makes a client of one Redis or of a cluster; it waits for no server.
//
// A reply that was cut is not sent again behind our back: the scripts are idempotent,
// but a second turn of one that admitted is still a second turn. A cluster's client
// does send again, when a node does not answer: that is how it follows a failover.
func openRedis(c configs.Redis, url string, log *slog.Logger) (redis.UniversalClient, error) {
	const timeout = 2 * time.Second
	redis.SetLogger(redisLog{log})
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if c.Cluster {
		o, err := redis.ParseClusterURL(url)
		if err != nil {
			return nil, fmt.Errorf("app: the address of redis (%s) cannot be used for a cluster", configs.StoreURL(url))
		}
		o.ClientName, o.MaxRetries = "usher", -1
		o.ContextTimeoutEnabled = true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = timeout, timeout, timeout
		o.PoolSize, o.MaintNotificationsConfig = c.PoolSize, quiet
		// A node that died says nothing of who took over; by default that is asked once a minute.
		o.ClusterStateReloadInterval = time.Second
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("app: the address of redis (%s) cannot be used", configs.StoreURL(url))
	}
	o.ClientName, o.MaxRetries = "usher", -1
	o.ContextTimeoutEnabled = true // deadlines are ignored without it
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = timeout, timeout, timeout
	o.PoolSize, o.MaintNotificationsConfig = c.PoolSize, quiet
	return redis.NewClient(o), nil
}

// redisLog takes the client's own messages, which otherwise go to standard
// error in a form of their own. Every failed command is reported by its caller.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, v ...any) {
	l.log.Debug("redis client", "msg", fmt.Sprintf(format, v...))
}

// await asks until the store answers, ctx ends, or half a minute is over.
func await(ctx context.Context, log *slog.Logger, name string, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		err := ping(ctx)
		if err == nil {
			return nil
		}
		log.Warn("a store does not answer yet", "store", name, "err", err, "retryIn", wait.String())
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

func joined(errs []error) error { return errors.Join(errs...) }
