package bookingtest

import (
	"context"
	"testing"
)

// Prepares checks that Postgres takes every statement as it stands, against the
// migrated schema; an empty list checks nothing and fails.
func Prepares(t *testing.T, statements map[string]string) {
	t.Helper()
	if len(statements) == 0 {
		t.Fatal("no statements are listed")
	}
	ctx := context.Background()
	conn, err := Pool(t).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for name, sql := range statements {
		if _, err := conn.Conn().Prepare(ctx, name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
