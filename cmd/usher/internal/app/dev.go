package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"usher/booking/catalog"
	"usher/booking/schema"
	"usher/configs"
	"usher/internal/devstack"
)

// DevOptions configure everything on one machine.
type DevOptions struct {
	Data      string         // folder to keep; "" for a temporary one
	Environ   []string       // as os.Environ gives it
	Overrides map[string]any // configuration keys set by flags
	Command   string         // how this program was called, for the banner's example; "": usher
	Out       io.Writer      // the banner
	ReadyFile string         // written, as JSON and 0600, once everything answers; "" for none
	Log       *slog.Logger
	Level     *slog.LevelVar
}

// DevReady is what the ready file holds.
type DevReady struct {
	Edge          string `json:"edge"` // addresses are URLs without a trailing slash
	Booking       string `json:"booking"`
	Sandbox       string `json:"sandbox"`
	Admin         string `json:"admin"`
	OperatorToken string `json:"operatorToken"`
	PostgresURL   string `json:"postgresUrl"`
	RedisURL      string `json:"redisUrl"`
	Data          string `json:"data"`
}

// Dev runs every role until ctx ends, on stores of its own unless the
// configuration names some.
func Dev(ctx context.Context, o DevOptions) (err error) {
	start := time.Now()
	folder, err := openDevFolder(o.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.close()) }()

	live, err := configs.NewLive(configs.Source{
		Base: devBase(folder), Environ: o.Environ, Overrides: o.Overrides, Role: "dev",
	})
	if err != nil {
		return err
	}
	d := &dev{folder: folder, cfg: live.Get(), log: o.Log}
	if o.Level != nil {
		_ = o.Level.UnmarshalText([]byte(d.cfg.Log.Level)) // checked by configs
	}
	a, err := New(Options{Role: "dev", Config: live, Log: o.Log, Level: o.Level, Prepare: d.stores})
	if err != nil {
		return err
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	select { // the rooms must be there when the banner names them
	case <-a.bridge.Load().first:
	case <-ctx.Done():
	}
	ready := d.ready(a)
	forget := rememberToken(a.Addr("admin"), folder.secrets.Operator)
	defer forget()
	if err := announce(o, ready, folder, time.Since(start)); err != nil {
		return errors.Join(err, a.Stop())
	}
	select {
	case <-ctx.Done():
	case err = <-a.fatal:
	case err = <-d.lost:
	}
	return errors.Join(err, a.Stop())
}

// devBase is the configuration of `usher dev` before environment and flags.
func devBase(f *devFolder) map[string]any {
	sum := sha256.Sum256([]byte(f.secrets.Operator))
	hash := "sha256:" + hex.EncodeToString(sum[:])
	var operators []any
	for _, role := range []string{configs.RoleOperator, configs.RoleBoxOffice, configs.RoleGate} {
		operators = append(operators, map[string]any{"name": "dev-" + role, "role": role, "tokenHash": hash})
	}
	return map[string]any{
		"log.level": "warn", // the banner is to be read; --log-level info shows the requests
		"edge.addr": "127.0.0.1:8080", "booking.addr": "127.0.0.1:8081", "sandbox.addr": "127.0.0.1:8082",
		"admin.addr": "127.0.0.1:9090", "edge.secureCookies": false, "booking.secureCookies": false,
		"edge.placeSecrets": []any{f.secrets.Place}, "booking.sessionSecret": f.secrets.Session,
		"booking.ticketSecrets": []any{f.secrets.Tickets},
		"payment.secrets":       []any{f.secrets.Payment}, "payment.apiKey": f.secrets.APIKey,
		"pass.keysFile": f.keysFile(), "sandbox.stateFile": f.file("payments.jsonl"),
		"operators": operators, "booking.events.file": f.file("booking-events.jsonl"),
		// Everybody comes from one address here: the demo, its tests and a first load test.
		"edge.limits.perAddress.perMinute": 600_000, "edge.limits.perAddress.burst": 100_000,
		"edge.limits.perBlock.perMinute": 600_000, "edge.limits.perBlock.burst": 100_000,
		"edge.proof.free.perAddress.perMinute": 60_000, "edge.proof.free.perAddress.burst": 20_000,
		"edge.proof.free.perBlock.perMinute": 60_000, "edge.proof.free.perBlock.burst": 20_000,
	}
}

type dev struct {
	folder *devFolder
	cfg    *configs.Config
	log    *slog.Logger
	urls   Stores
	lost   chan error // a private store ended by itself
}

// stores starts what the configuration does not name, both at once, and
// migrates and fills the database.
func (d *dev) stores(ctx context.Context) (Stores, error) {
	d.lost = make(chan error, 2)
	s := Stores{Passing: d.cfg.Redis.URL.Reveal() == "" && !d.folder.kept, PostgresURL: d.cfg.Postgres.URL.Reveal(), RedisURL: d.cfg.Redis.URL.Reveal(), Migrated: d.migrate}
	var pg, rd *devstack.Server
	s.Stop = func(ctx context.Context) error { return stopBoth(ctx, pg, rd) }
	g, ctx := errgroup.WithContext(ctx)
	dir := d.folder.file("stores")
	if s.PostgresURL == "" {
		g.Go(func() (err error) { pg, err = devstack.Postgres(ctx, dir, d.folder.kept); return err })
	}
	if s.RedisURL == "" {
		g.Go(func() (err error) { rd, err = devstack.Redis(ctx, dir, d.folder.kept); return err })
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	if pg != nil {
		s.PostgresURL = pg.URL
		go d.watch("postgres", pg)
	}
	if rd != nil {
		s.RedisURL = rd.URL
		go d.watch("redis", rd)
	}
	d.urls = s
	return s, nil
}

// stopBoth stops the private stores beside each other; when ctx ends, what still
// runs is killed. The clients' pools are closed by then.
func stopBoth(ctx context.Context, servers ...*devstack.Server) error {
	var g errgroup.Group
	for _, s := range servers {
		g.Go(func() error { return s.StopWithin(ctx) })
	}
	return g.Wait()
}

// watch reports a private store that ends; after Stop nobody listens any more.
func (d *dev) watch(name string, s *devstack.Server) {
	<-s.Done()
	d.lost <- fmt.Errorf("dev: %s ended by itself:\n%s", name, s.Output())
}

func (d *dev) migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if err := schema.Up(ctx, d.urls.PostgresURL); err != nil {
		return err
	}
	return catalog.ApplyDemos(ctx, pool)
}

func (d *dev) ready(a *App) DevReady {
	r := DevReady{
		Edge: a.urlOf("edge", d.cfg.Edge.PublicURL), Booking: a.urlOf("booking", d.cfg.Booking.PublicURL),
		Sandbox: a.urlOf("sandbox", d.cfg.Sandbox.PublicURL), Admin: a.urlOf("admin", ""),
		OperatorToken: d.folder.secrets.Operator, PostgresURL: d.urls.PostgresURL, RedisURL: d.urls.RedisURL,
	}
	if d.folder.kept {
		r.Data = d.folder.path
	}
	return r
}

func announce(o DevOptions, r DevReady, f *devFolder, took time.Duration) error {
	if o.ReadyFile != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err == nil {
			err = writeSecretFile(o.ReadyFile, append(data, '\n'))
		}
		if err != nil {
			return fmt.Errorf("dev: ready file: %w", err)
		}
	}
	data := "kept in " + f.path
	if !f.kept {
		data = "gone at the end; --data DIR keeps it"
	}
	_, err := fmt.Fprintf(o.Out, `
  Usher is ready (%.1f s). Open a waiting room:

    %[2]s/rooms/cinema       a hall of some 180 seats
    %[2]s/rooms/stadium      some 20,000 seats in sections
    %[2]s/rooms/last-seats   only a handful left

  booking   %[3]s
  payments  %[4]s   (sandbox: no money moves)
  admin     %[5]s   operator token %[6]s
            try: %[8]s room pause cinema
  data      %[7]s

  Ctrl-C stops everything.

`, took.Seconds(), r.Edge, r.Booking, r.Sandbox, r.Admin, r.OperatorToken, data, cmp.Or(o.Command, "usher"))
	return err
}
