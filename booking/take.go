package booking

import (
	"context"
	_ "embed" // take.sql
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/admission/pass"
)

// sessionMargin is how long a session outlives its last live hold: time for the
// provider's last word to arrive while the fan's page still has a session.
const sessionMargin = time.Minute

// sqlLockLimits makes the limit rows that are missing and locks all, in key
// order, so that two steps over the same customers cannot deadlock. DO UPDATE
// with a false condition locks without writing a row version.
const sqlLockLimits = `
	INSERT INTO customer_limit AS c (scope_id, customer_id)
	SELECT scope_id, customer_id FROM unnest($1::text[], $2::text[]) AS r(scope_id, customer_id) ORDER BY 1, 2
	ON CONFLICT (scope_id, customer_id) DO UPDATE SET takes = c.takes WHERE false`

//go:embed take.sql
var sqlTake string

const (
	sqlBegin  = `BEGIN ISOLATION LEVEL READ COMMITTED`
	sqlCommit = `COMMIT`
)

// takeRequest is one hold as a lane works it.
type takeRequest struct {
	holdID, showtimeID, scopeID, customer, sessionID string
	seats                                            []string // sorted
	amount                                           int64
	currency                                         string
	holdTime                                         time.Duration
	maxCustomer                                      int // 0: no limit
	key, hash                                        string
}

// takeResult is what one step decided about one request.
type takeResult struct {
	outcome    string   // one of those take.sql lists
	hold       Hold     // of take, same and replay
	lost       []string // of taken: others have them; of gone: there are no such seats any more
	yours      []string // of taken: the same customer holds them, under yourHold
	yourHold   string
	held, sold int
	retryAfter time.Duration
	err        error // set: the step failed, outcome is ""
}

// errCommitUnknown: the answer to COMMIT never came.
var errCommitUnknown = errors.New("booking: the commit's outcome is not known")

// take runs one step: the statements between BEGIN and COMMIT in one round
// trip. The results are true only when it returns no error: each is decided
// before the commit, and a commit can fail. requests must be disjoint by seat, by
// (customer, scope) and by key. An error that refused recognises means nothing was
// done; any other may have been committed all the same.
func take(ctx context.Context, conn *pgx.Conn, requests []*takeRequest, takesPerMin int) ([]takeResult, error) {
	scopes, customers, args := takeArgs(requests, takesPerMin)
	batch := &pgx.Batch{}
	batch.Queue(sqlBegin)
	batch.Queue(sqlFence)
	batch.Queue(sqlLockLimits, scopes, customers)
	batch.Queue(sqlTake, args...)
	batch.Queue(sqlCommit)
	br := conn.SendBatch(ctx, batch)
	results, err := readTake(br, requests)
	if closeErr := br.Close(); err == nil && closeErr != nil {
		err = closeErr
	}
	if err == nil {
		return results, nil
	}
	if !refused(err) {
		return nil, fmt.Errorf("%w: %w", errCommitUnknown, err)
	}
	if conn.PgConn().TxStatus() != 'I' {
		if _, undoErr := conn.Exec(ctx, "ROLLBACK"); undoErr != nil {
			_ = conn.Close(ctx) // the server undoes it with the connection
		}
	}
	return nil, err
}

func readTake(br pgx.BatchResults, requests []*takeRequest) ([]takeResult, error) {
	for range 3 { // BEGIN, fence, limit rows
		if _, err := br.Exec(); err != nil {
			return nil, err
		}
	}
	rows, err := br.Query()
	if err != nil {
		return nil, err
	}
	results := make([]takeResult, len(requests))
	answered := 0
	for rows.Next() {
		var idx, seconds int
		var r takeResult
		var retryMS int64
		if err := rows.Scan(&idx, &r.outcome, &r.lost, &r.held, &r.sold, &retryMS, &r.hold.ID, &r.hold.SessionID,
			&r.hold.Seats, &r.hold.Amount, &r.hold.Currency, &r.hold.State, &r.hold.ExpiresAt, &seconds, &r.yours, &r.yourHold); err != nil {
			rows.Close()
			return nil, err
		}
		q := requests[idx-1]
		r.hold.ShowtimeID, r.hold.Customer = q.showtimeID, q.customer
		r.hold.ExpiresAt = r.hold.ExpiresAt.UTC()
		if r.hold.Seats == nil {
			r.hold.Seats = q.seats
		}
		r.retryAfter = time.Duration(retryMS) * time.Millisecond
		results[idx-1] = r
		answered++
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if answered != len(requests) {
		return nil, fmt.Errorf("booking: take answered %d of %d requests", answered, len(requests))
	}
	tag, err := br.Exec()
	if err != nil {
		return nil, err
	}
	if tag.String() != sqlCommit { // a COMMIT of a failed transaction answers ROLLBACK
		return nil, fmt.Errorf("booking: take: the server answered %q to COMMIT", tag.String())
	}
	return results, nil
}

func takeArgs(requests []*takeRequest, takesPerMin int) (scopes, customers []string, args []any) {
	n := len(requests)
	ids, shows, sessions, currencies := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	keys, hashes := make([]string, n), make([]string, n)
	counts, seconds, limits := make([]int32, n), make([]int32, n), make([]int32, n)
	amounts := make([]int64, n)
	scopes, customers = make([]string, n), make([]string, n)
	type wanted struct {
		idx        int32
		show, seat string
	}
	var want []wanted
	for i, r := range requests {
		ids[i], shows[i], sessions[i], currencies[i] = r.holdID, r.showtimeID, r.sessionID, r.currency
		scopes[i], customers[i], keys[i], hashes[i] = r.scopeID, r.customer, r.key, r.hash
		counts[i], amounts[i], limits[i] = int32(len(r.seats)), r.amount, int32(r.maxCustomer)
		seconds[i] = int32(r.holdTime / time.Second)
		for _, s := range r.seats {
			want = append(want, wanted{int32(i + 1), r.showtimeID, s})
		}
	}
	sort.Slice(want, func(a, b int) bool {
		if want[a].show != want[b].show {
			return want[a].show < want[b].show
		}
		return want[a].seat < want[b].seat
	})
	wi, wshow, wseat := make([]int32, len(want)), make([]string, len(want)), make([]string, len(want))
	for i, w := range want {
		wi[i], wshow[i], wseat[i] = w.idx, w.show, w.seat
	}
	return scopes, customers, []any{
		ids, shows, scopes, customers, sessions, counts, amounts, currencies, seconds, limits, keys, hashes,
		wi, wshow, wseat, int32(takesPerMin), int32(pass.LongestSession / time.Second), int32(sessionMargin / time.Second),
	}
}
