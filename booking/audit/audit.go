package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Breach is one row, or group of rows, that breaks an invariant.
type Breach struct {
	Invariant string `json:"invariant"` // its name; see Invariants
	Table     string `json:"table"`
	Key       string `json:"key"` // column=value pairs
	Expected  string `json:"expected"`
	Found     string `json:"found"`
}

func (b Breach) String() string {
	return fmt.Sprintf("%s: %s (%s): expected %s, found %s", b.Invariant, b.Table, b.Key, b.Expected, b.Found)
}

// invariant is a question whose every answer is a breach: key, expected, found.
type invariant struct {
	name, table string
	// sql may read the instant of the check as (SELECT t FROM moment).
	sql string
}

// mostBreaches of one invariant are named: after a disaster the first thousand say enough.
const mostBreaches = 1000

func invariants() []invariant {
	return slices.Concat(seatInvariants, moneyInvariants, bookInvariants, revokedInvariants)
}

// Invariants names everything that Check looks for, in its order.
func Invariants() []string {
	var names []string
	for _, i := range invariants() {
		names = append(names, i.name)
	}
	return names
}

// Check looks for every invariant and answers the breaches, none when all is well. At
// most 1,000 are named of each invariant.
func Check(ctx context.Context, pool *pgxpool.Pool) ([]Breach, error) {
	var found []Breach
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, pool, snapshot, func(tx pgx.Tx) (err error) {
		found, err = check(ctx, tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return found, nil
}

func check(ctx context.Context, tx pgx.Tx) ([]Breach, error) {
	var found []Breach
	var moment time.Time
	if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&moment); err != nil {
		return nil, err
	}
	for _, i := range invariants() {
		some, err := i.look(ctx, tx, moment)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i.name, err)
		}
		found = append(found, some...)
	}
	return found, nil
}

func (i invariant) look(ctx context.Context, tx pgx.Tx, moment time.Time) ([]Breach, error) {
	rows, _ := tx.Query(ctx, `WITH moment AS MATERIALIZED (SELECT $1::timestamptz AS t)
		SELECT key, expected, found FROM (`+i.sql+`) AS breach (key, expected, found)
		 ORDER BY 1, 2, 3 LIMIT $2`, moment, mostBreaches)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Breach, error) {
		b := Breach{Invariant: i.name, Table: i.table}
		return b, row.Scan(&b.Key, &b.Expected, &b.Found)
	})
}

// Format is the report that `usher audit` prints; it ends with a line that sums up.
func Format(breaches []Breach) string {
	var b strings.Builder
	for _, breach := range breaches {
		b.WriteString(breach.String() + "\n")
	}
	if len(breaches) == 0 {
		fmt.Fprintf(&b, "ok: %d invariants hold\n", len(invariants()))
		return b.String()
	}
	broken := map[string]bool{}
	for _, breach := range breaches {
		broken[breach.Invariant] = true
	}
	fmt.Fprintf(&b, "%d breaches of %d of %d invariants\n", len(breaches), len(broken), len(invariants()))
	return b.String()
}
