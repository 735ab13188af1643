package audit

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/booking/bookingtest"
)

// Every table is one of three: it is written by the box office and stays small, it has a
// reason not to be divided by showtime, or its key begins with what it is divided
// by. A new table must choose.
var undivided = map[string]string{
	"room": "catalog", "venue": "catalog", "layout": "catalog", "layout_seat": "catalog",
	"event": "catalog", "price_class": "catalog", "showtime": "catalog",
	"session":          "a visit belongs to a room, before any showtime is chosen",
	"idempotency":      "a key is the customer's, and looked up before anything else is known",
	"provider_event":   "the provider's id is all there is when it arrives",
	"draw_entries":     "belongs to a room, written once when it opens",
	"revocation":       "written by people; asked by what it names",
	"audit_log":        "written by people, at people's speed",
	"goose_db_version": "migrations",
}

func TestTablesThatGrowWithSalesAreKeyedByShowtime(t *testing.T) {
	t.Parallel()
	rows, _ := bookingtest.Pool(t).Query(context.Background(), `
		SELECT c.relname::text, COALESCE((SELECT a.attname::text FROM pg_index i JOIN pg_attribute a
		           ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		        WHERE i.indrelid = c.oid AND i.indisprimary), '')
		  FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace`)
	var table, first string
	keyed := 0
	_, err := pgx.ForEachRow(rows, []any{&table, &first}, func() error {
		switch {
		case undivided[table] != "" || strings.HasPrefix(table, "river_"):
		case first == "showtime_id" || first == "scope_id":
			keyed++
		default:
			t.Errorf("the primary key of %s begins with %q, not with showtime_id or scope_id", table, first)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if keyed < 7 {
		t.Errorf("only %d tables were looked at", keyed)
	}
}
