// Package devstacktest gives tests real servers: one Postgres and one Redis per
// test binary, started at the first need and stopped by Main, and a fresh
// database or key space per test so that t.Parallel is always safe.
package devstacktest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/internal/devstack"
)

var (
	mu       sync.Mutex
	dir      string
	postgres *devstack.Server
	redis    *devstack.Server
	serial   atomic.Int64
	tmplMu   sync.Mutex
	tmpls    = map[string]bool{}
)

// Main runs the tests and then stops whatever they started; use it as
//
//	func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }
func Main(m *testing.M) int {
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		_ = postgres.Stop()
		_ = redis.Stop()
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}()
	return m.Run()
}

func tempDir(t testing.TB) string {
	if dir == "" {
		d, err := os.MkdirTemp("", "usher-test-")
		if err != nil {
			t.Fatal(err)
		}
		// An unprivileged server must enter it.
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
		dir = d
	}
	return dir
}

// RedisURL is the address of the binary's shared Redis. Tests keep apart by
// using room names of their own (Name).
func RedisURL(t testing.TB) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if redis == nil {
		s, err := devstack.Redis(context.Background(), tempDir(t)+"/r", false)
		if err != nil {
			t.Fatal(err)
		}
		redis = s
	}
	return redis.URL
}

// OwnRedis starts a Redis for this test alone, for tests that empty, kill or
// stall it; it is stopped at the test's end.
func OwnRedis(t testing.TB) *devstack.Server {
	t.Helper()
	mu.Lock()
	d := fmt.Sprintf("%s/r%d", tempDir(t), serial.Add(1))
	mu.Unlock()
	s, err := devstack.Redis(context.Background(), d, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// PostgresURL makes a fresh database for this test and gives its address; it is
// dropped at the test's end. With migrate set, the database is a copy of a
// template that migrate has filled once for the binary under the given name.
func PostgresURL(t testing.TB, template string, migrate func(ctx context.Context, url string) error) string {
	t.Helper()
	mu.Lock()
	if postgres == nil {
		s, err := devstack.Postgres(context.Background(), tempDir(t)+"/p", false)
		if err != nil {
			mu.Unlock()
			t.Fatal(err)
		}
		postgres = s
	}
	base := postgres.URL
	mu.Unlock()

	ctx := context.Background()
	from := "template1"
	if migrate != nil {
		from = "tmpl_" + template
		tmplMu.Lock()
		if !tmpls[template] {
			exec(t, base, "CREATE DATABASE "+pgx.Identifier{from}.Sanitize())
			if err := migrate(ctx, withDatabase(base, from)); err != nil {
				tmplMu.Unlock()
				t.Fatal(err)
			}
			tmpls[template] = true
		}
		tmplMu.Unlock()
	}
	name := Name("db")
	name = strings.ReplaceAll(name, "-", "_")
	// Two copies of one template at once fail ("being accessed by other users"): one after the other.
	tmplMu.Lock()
	exec(t, base, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", pgx.Identifier{name}.Sanitize(), pgx.Identifier{from}.Sanitize()))
	tmplMu.Unlock()
	t.Cleanup(func() { exec(t, base, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)") })
	return withDatabase(base, name)
}

// Name is unique within the test binary's servers and fits a room's name.
func Name(prefix string) string { return fmt.Sprintf("%s-%d", prefix, serial.Add(1)) }

func exec(t testing.TB, dsn, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func withDatabase(base, name string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err) // a URL this package made
	}
	u.Path = "/" + name
	return u.String()
}
