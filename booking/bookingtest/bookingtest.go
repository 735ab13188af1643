// Package bookingtest gives tests a migrated database of their own.
package bookingtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking/schema"
	"usher/internal/devstack/devstacktest"
)

// URL is the address of a fresh, migrated, empty database, dropped at the
// test's end.
func URL(t testing.TB) string {
	t.Helper()
	return devstacktest.PostgresURL(t, "booking", schema.Up)
}

// Pool is a pool on a fresh, migrated, empty database.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return PoolOn(t, URL(t))
}

// PoolOn is one more pool on url: a second process, as the database sees it.
func PoolOn(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
