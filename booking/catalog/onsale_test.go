package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/admission/pass"
	"usher/booking"
	"usher/booking/audit"
	"usher/booking/bookingtest"
	"usher/booking/catalog"
)

const nightFile = `
rooms: [{id: hall, title: Hall, ratePerMinute: 60, cap: 10}]
venues:
  - id: house
    name: House
    timezone: UTC
    seatCodes: "{row}{seat}"
    sections: [{id: S, price: seat, rows: A-B, seats: 1-4}]
events:
  - id: play
    venue: house
    title: A play
    kind: cinema
    currency: EUR
    prices: {seat: {name: Seat, amount: 1000}}
    showtimes: [{id: night, room: hall, startsAt: 2030-06-01 20:00}]
`

func apply(t *testing.T, pool *pgxpool.Pool, text string) {
	t.Helper()
	f, err := catalog.Parse("night.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Apply(context.Background(), pool, f, "ann"); err != nil {
		t.Fatal(err)
	}
}

func runningOffice(t *testing.T, pool *pgxpool.Pool) *booking.Office {
	t.Helper()
	ring, err := pass.NewRing(time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	office, err := booking.New(pool, booking.Options{
		Verifier:      pass.NewVerifier(pass.RingSource(func() pass.Ring { return ring }, time.Now), nil),
		SessionSecret: []byte("a secret of this test, 32 bytes+"),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- office.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return office
}

// Sold out at the office; the box office adds ten seats; within a second the next ten
// holds of a process that knew the old hall succeed.
func TestB7_NextHoldsSucceedWithinASecond(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := bookingtest.Pool(t)
	apply(t, pool, nightFile)
	office := runningOffice(t, pool)
	hold := func(fan string, seats ...string) error {
		s := booking.Session{ID: bookingtest.Visit(t, pool, "hall", fan), Room: "hall", Customer: fan}
		_, _, err := office.Hold(ctx, s, booking.HoldRequest{ShowtimeID: "night", Seats: seats})
		return err
	}
	if err := hold("early", "A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4"); err != nil {
		t.Fatal(err)
	}
	if err := hold("late", "A5"); err == nil {
		t.Fatal("held a seat that does not exist")
	}
	apply(t, pool, strings.Replace(nightFile, "1-4", "1-9", 1))
	deadline := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			seat, fan := fmt.Sprintf("%c%d", 'A'+i/5, 5+i%5), fmt.Sprint("fan-", i)
			for {
				err := hold(fan, seat)
				if err == nil {
					return
				}
				if time.Now().After(deadline) {
					t.Errorf("%s: %v", seat, err)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	breaches, err := audit.Check(ctx, pool)
	if err != nil || len(breaches) > 0 {
		t.Errorf("%s%v", audit.Format(breaches), err)
	}
}
