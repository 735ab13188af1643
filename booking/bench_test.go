package booking

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking/bookingtest"
)

// The same work twice: two-seat holds with limit rows, hold rows and sessions, by
// 128 waiting callers on one hot showtime. Compare the two in one run:
//
//	go test -run '^$' -bench Holds -benchtime 10x ./booking
//
// An operation is a round of 1,000 holds of 20,000 seats.
func BenchmarkHoldsThroughLanes(b *testing.B) {
	bench(b, func(of *Office) func(*takeRequest) error {
		return func(r *takeRequest) error {
			res, err := of.laneOf(r.scopeID).do(context.Background(), r, time.Now().Add(time.Minute))
			if err == nil && res.outcome != "take" {
				err = errors.New(res.outcome)
			}
			return err
		}
	})
}

func BenchmarkHoldsOneTransactionEach(b *testing.B) {
	bench(b, func(of *Office) func(*takeRequest) error {
		return func(r *takeRequest) error {
			conn, err := of.pool.Acquire(context.Background())
			if err != nil {
				return err
			}
			defer conn.Release()
			res, err := take(context.Background(), conn.Conn(), []*takeRequest{r}, -1)
			if err == nil && res[0].outcome != "take" {
				err = errors.New(res[0].outcome)
			}
			return err
		}
	})
}

func bench(b *testing.B, with func(*Office) func(*takeRequest) error) {
	const callers, round = 128, 1000
	url := bookingtest.URL(b)
	seats := bookingtest.Seed(b, bookingtest.PoolOn(b, url), bookingtest.Hall{Rows: 200, PerRow: 100, Limit: 6})
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	// The settings of a lane, so that only the shape differs.
	cfg.MaxConns = 64 // the private server takes 100
	cfg.ConnConfig.RuntimeParams["enable_seqscan"] = "off"
	cfg.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	of := office(b, pool)
	do := with(of)
	sessions := make([]string, callers)
	for i := range sessions {
		sessions[i] = bookingtest.Visit(b, pool, "room", fmt.Sprintf("fan-%d", i))
	}
	var waits sync.Map
	run := func(n int) {
		var next atomic.Int64
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
					id, _ := uuid.NewV7()
					asked := time.Now()
					err := do(&takeRequest{
						holdID: id.String(), showtimeID: "show", scopeID: "show", customer: fmt.Sprintf("fan-%d-%d", c, i), sessionID: sessions[c],
						seats: seats[2*i : 2*i+2], amount: 1, currency: "EUR", holdTime: time.Hour, maxCustomer: 6,
					})
					if err != nil {
						b.Error(err)
						return
					}
					waits.Store(id, time.Since(asked))
				}
			})
		}
		wg.Wait()
	}
	reset := func() {
		if _, err := pool.Exec(context.Background(), `TRUNCATE hold, customer_limit;
			UPDATE show_seat SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL WHERE status = 'HELD'`); err != nil {
			b.Fatal(err)
		}
	}
	run(200) // connections, plans
	for b.Loop() {
		b.StopTimer()
		reset()
		waits.Clear()
		b.StartTimer()
		run(round)
	}
	b.ReportMetric(float64(round)*float64(b.N)/b.Elapsed().Seconds(), "holds/s")
	var all []time.Duration
	waits.Range(func(_, v any) bool {
		d, _ := v.(time.Duration)
		all = append(all, d)
		return true
	})
	b.ReportMetric(float64(percentile(all, 0.99).Microseconds())/1000, "p99-ms")
}

func percentile(d []time.Duration, p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	for i := 1; i < len(d); i++ { // insertion: a thousand values
		for j := i; j > 0 && d[j] < d[j-1]; j-- {
			d[j], d[j-1] = d[j-1], d[j]
		}
	}
	return d[int(float64(len(d)-1)*p)]
}
