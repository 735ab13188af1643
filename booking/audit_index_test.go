package booking

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"usher/booking/bookingtest"
)

// A log that has grown for years is not read from end to end for one room's memory.
func TestTheLinesMemoryIsFoundByAnIndex(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), t.Context()
	if _, err := pool.Exec(ctx, `
		INSERT INTO audit_log (actor, action, subject, detail)
		SELECT 'ann', 'room.tune', 'room:' || i % 50, '{}' FROM generate_series(1, 50000) i`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `ANALYZE audit_log`); err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{
		"memories": `SELECT FROM audit_log WHERE subject = 'room:1' AND action = 'line.memory' AND (detail->>'incarnation')::bigint <> 3`,
		"invites":  `SELECT detail FROM audit_log WHERE action = 'room.invite' AND subject = 'room:' || '1' ORDER BY audit_id DESC LIMIT 20`,
	} {
		rows, err := pool.Query(ctx, `EXPLAIN `+sql)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); !strings.Contains(text, "audit_log_of") || strings.Contains(text, "Seq Scan") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
