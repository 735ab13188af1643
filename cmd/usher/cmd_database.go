package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking/audit"
	"usher/booking/catalog"
	"usher/booking/schema"
	"usher/cmd/usher/internal/app"
	"usher/configs"
)

// databaseFlags say which database a command works on.
type databaseFlags struct {
	configFlag
	PostgresURL string `placeholder:"URL" help:"The database; else USHER_POSTGRES_URL or the configuration's."`
}

func (f databaseFlags) config(w *world) (*configs.Config, error) {
	src := configs.Source{File: f.Config, Environ: w.environ}
	if f.PostgresURL != "" {
		src.Overrides = map[string]any{"postgres.url": f.PostgresURL}
	}
	c, err := configs.Load(src)
	if err != nil {
		return nil, err
	}
	if c.Postgres.URL == "" {
		return nil, errors.New("which database? Set USHER_POSTGRES_URL, --postgres-url or --config")
	}
	return c, nil
}

func (f databaseFlags) pool(w *world) (*pgxpool.Pool, error) {
	c, err := f.config(w)
	if err != nil {
		return nil, err
	}
	// An import of a stadium and an audit of a season are longer than a request.
	c.Postgres.StatementTimeout = 5 * time.Minute
	c.Postgres.MaxConns = 4
	return app.OpenPool(w.ctx, c.Postgres.URL.Reveal(), c.Postgres, "usher-cli")
}

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply what is missing. Safe from any number of processes at once."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations; exits non-zero when one is missing."`
}

type migrateUpCmd struct{ databaseFlags }

func (c migrateUpCmd) Run(w *world) error {
	cfg, err := c.config(w)
	if err != nil {
		return err
	}
	if err := schema.Up(w.ctx, cfg.Postgres.URL.Reveal()); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w.out, "the database is up to date")
	return err
}

type migrateStatusCmd struct{ databaseFlags }

func (c migrateStatusCmd) Run(w *world) error {
	cfg, err := c.config(w)
	if err != nil {
		return err
	}
	list, err := schema.List(w.ctx, cfg.Postgres.URL.Reveal())
	if err != nil {
		return err
	}
	missing := 0
	for _, m := range list {
		state := "applied"
		if !m.Applied {
			state, missing = "missing", missing+1
		}
		_, _ = fmt.Fprintf(w.out, "%-8s %s\n", state, m.Name)
	}
	if missing > 0 {
		return fmt.Errorf("%d missing; run: usher migrate up", missing)
	}
	return nil
}

type eventCmd struct {
	Apply eventApplyCmd `cmd:"" help:"Import a file of rooms, venues, events and showtimes. Applying it twice changes nothing."`
	List  eventListCmd  `cmd:"" help:"List the events."`
	Show  eventShowCmd  `cmd:"" help:"Show one event with its showtimes and what is left."`
}

type eventApplyCmd struct {
	databaseFlags
	File   string `short:"f" required:"" type:"existingfile" help:"The file (YAML)."`
	DryRun bool   `help:"Say what would change, and change nothing."`
}

func (c eventApplyCmd) Run(w *world) error {
	data, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	file, err := catalog.Parse(c.File, data)
	if err != nil {
		return err
	}
	pool, err := c.pool(w)
	if err != nil {
		return err
	}
	defer pool.Close()
	var sum catalog.Summary
	if c.DryRun {
		sum, err = catalog.Plan(w.ctx, pool, file)
	} else {
		sum, err = catalog.Apply(w.ctx, pool, file, "cli:"+currentUser())
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w.out, sum)
	return err
}

type eventListCmd struct{ databaseFlags }

func (c eventListCmd) Run(w *world) error {
	pool, err := c.pool(w)
	if err != nil {
		return err
	}
	defer pool.Close()
	list, err := catalog.List(w.ctx, pool)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "EVENT\tTITLE\tVENUE\tSHOWTIMES\tFIRST")
	for _, e := range list {
		first := "-"
		if !e.FirstStart.IsZero() {
			first = e.FirstStart.Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", e.ID, e.Title, e.Venue, e.Showtimes, first)
	}
	return t.Flush()
}

type eventShowCmd struct {
	databaseFlags
	ID string `arg:"" help:"The event's id."`
}

func (c eventShowCmd) Run(w *world) error {
	pool, err := c.pool(w)
	if err != nil {
		return err
	}
	defer pool.Close()
	e, err := catalog.Show(w.ctx, pool, c.ID)
	if err != nil {
		return err
	}
	limit := "no limit a customer"
	if e.MaxPerCustomer > 0 {
		limit = fmt.Sprintf("%d a customer and %s", e.MaxPerCustomer, e.LimitScope)
	}
	_, _ = fmt.Fprintf(w.out, "%s  %s (%s)\n%s, %s, %s\n%d seats a hold, %s, held for %s\n\n",
		e.ID, e.Title, e.Kind, e.Venue, e.City, e.Timezone, e.MaxPerHold, limit, e.Hold)
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "PRICE\tNAME\tAMOUNT\t")
	for _, p := range e.Prices {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d.%02d %s\t\n", p.Code, p.Name, p.Amount/100, p.Amount%100, e.Currency)
	}
	_, _ = fmt.Fprintln(t, "\nSHOWTIME\tROOM\tSTARTS\tSEATS\tFREE\tHELD\tSOLD")
	for _, s := range e.Times {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\n",
			s.ID, s.Room, s.StartsAt.Format(time.RFC3339), s.Seats, s.Free, s.Held, s.Booked)
	}
	return t.Flush()
}

type auditCmd struct {
	databaseFlags
	Data string `env:"USHER_DATA" placeholder:"DIR" help:"Audit what a stopped usher dev kept in this folder."`
}

func (c auditCmd) Run(w *world) error {
	if c.Data != "" && c.PostgresURL == "" {
		url, stop, err := app.KeptPostgres(w.ctx, c.Data)
		if err != nil {
			return err
		}
		defer stop()
		c.PostgresURL = url
	}
	pool, err := c.pool(w)
	if err != nil {
		return err
	}
	defer pool.Close()
	breaches, err := audit.Check(w.ctx, pool)
	if err != nil {
		return err
	}
	if len(breaches) > 0 {
		_, _ = fmt.Fprintln(w.out, audit.Format(breaches))
		return fmt.Errorf("audit: %d breaches", len(breaches))
	}
	_, err = fmt.Fprintln(w.out, "audit: every invariant holds")
	return err
}
