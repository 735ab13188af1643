// Package schema holds the database's migrations: embedded, numbered, forward
// only. Everything that grows with sales has showtime_id first in its key, so
// that the database can be distributed by it.
package schema

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed *.sql
var files embed.FS

// Status tells one migration's number and whether it is applied.
type Status struct {
	Version int64
	Name    string
	Applied bool
}

// Up applies what is missing, and the job queue's own migrations. Any number of
// processes may start at once: a session lock lets one work.
func Up(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("schema: connect: %w", err)
	}
	defer pool.Close()
	p, db, err := provider(pool)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return fmt.Errorf("schema: jobs: %w", err)
	}
	// River takes no lock of its own: hold an advisory one so that two starters
	// do not create the same table.
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("schema: jobs: %w", err)
	}
	defer conn.Release()
	const jobsLock = 7_305_911_202
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, jobsLock); err != nil {
		return fmt.Errorf("schema: jobs: %w", err)
	}
	defer func() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, jobsLock)
	}()
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("schema: jobs: %w", err)
	}
	return nil
}

// List tells every migration this binary knows and whether url has it.
func List(ctx context.Context, url string) ([]Status, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("schema: connect: %w", err)
	}
	defer pool.Close()
	p, db, err := provider(pool)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	rows, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	var out []Status
	for _, r := range rows {
		out = append(out, Status{Version: r.Source.Version, Name: r.Source.Path, Applied: r.State == goose.StateApplied})
	}
	return out, nil
}

func provider(pool *pgxpool.Pool) (*goose.Provider, *sql.DB, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	sub, err := fs.Sub(files, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	p, err := goose.NewProvider(goose.DialectPostgres, db, sub, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, nil, fmt.Errorf("schema: %w", err)
	}
	return p, db, nil
}
