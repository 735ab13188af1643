package booking

import (
	"context"
	"testing"
	"time"

	"usher/booking/bookingtest"
)

// reportWith asks until the first room's report is as wanted.
func reportWith(t *testing.T, of *Office, ok func(RoomReport) bool) RoomReport {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		reports, err := of.Reports(context.Background())
		if err != nil || len(reports) == 0 {
			t.Fatalf("%d reports, %v", len(reports), err)
		}
		if ok(reports[0]) {
			return reports[0]
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("still %+v", reports[0])
		}
	}
}

// The line must hear of living sessions whatever becomes of the count: without
// them nobody is called in any room.
func TestAReportDoesNotWaitForTheCount(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	fan(t, pool, "ann")
	reportWith(t, of, func(r RoomReport) bool { return r.Total == 200 })
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `LOCK TABLE show_seat IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	for {
		turn, cancel := context.WithTimeout(ctx, 10*time.Second)
		reports, err := of.Reports(turn)
		cancel()
		if err != nil || len(reports) != 1 || len(reports[0].Living) != 1 || reports[0].Total != 200 || reports[0].Available != 200 {
			t.Fatalf("%+v, %v", reports, err)
		}
		// Until a count waits for the lock: then the report has not waited for it.
		if number(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) > 0 {
			break
		}
	}
}

func TestAReportCountsWhatIsStillOnSale(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	bookingtest.Seed(t, pool, bookingtest.Hall{Showtime: "yesterday"})
	bookingtest.Seed(t, pool, bookingtest.Hall{Showtime: "just-begun"})
	if _, err := pool.Exec(ctx, `UPDATE showtime SET starts_at = now() - CASE showtime_id
		WHEN 'yesterday' THEN interval '1 day' ELSE interval '1 hour' END WHERE showtime_id <> 'show'`); err != nil {
		t.Fatal(err)
	}
	r := reportWith(t, office(t, pool), func(r RoomReport) bool { return r.Total > 0 })
	if r.Total != 400 {
		t.Errorf("%d seats, want those of two showtimes", r.Total)
	}
}

// A visit whose time is up, and which no sweep has ended yet, is over. In neither list it
// would free its slot as a pass that nobody used, and the fan would have the place back.
func TestAReportTellsOfVisitsThatRanOut(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	fan(t, pool, "ann")
	fan(t, pool, "bea")
	if _, err := pool.Exec(ctx, `UPDATE session SET expires_at = now() - interval '1 second' WHERE customer_id = 'ann'`); err != nil {
		t.Fatal(err)
	}
	reports, err := of.Reports(ctx)
	if err != nil || len(reports) != 1 || len(reports[0].Living) != 1 || len(reports[0].Ended) != 1 || len(reports[0].Revoked) != 0 {
		t.Fatalf("%+v, %v", reports, err)
	}
	if reports[0].Ended[0].JTI == reports[0].Living[0].JTI {
		t.Errorf("%+v", reports[0])
	}
}
