package booking

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"usher/booking/bookingtest"
)

// shown reads one seat's status on the map of of.
func shown(t testing.TB, of *Office, seat string) string {
	t.Helper()
	m, err := of.SeatMap(context.Background(), "show")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Seats []seatDoc }
	if err := json.Unmarshal(m.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, s := range doc.Seats {
		if s.Code == seat {
			return s.Status
		}
	}
	return ""
}

func TestB17_TheMapShowsAnotherProcessHoldWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	url := bookingtest.URL(t)
	pool := bookingtest.PoolOn(t, url)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	here, there := office(t, pool), office(t, bookingtest.PoolOn(t, url))
	if s := shown(t, here, "A1"); s != SeatAvailable {
		t.Fatalf("A1 is %q", s)
	}
	if _, _, err := there.Hold(context.Background(), fan(t, pool, "ann"), HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}}); err != nil {
		t.Fatal(err)
	}
	taken := time.Now()
	for shown(t, here, "A1") != SeatHeld {
		if time.Since(taken) > 2*time.Second {
			t.Fatal("not after 2 s")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestTheMapShowsOwnCommitsAndExpiriesWithoutReading(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{HoldSeconds: 2})
	of := office(t, pool, func(o *Options) { o.MapEvery = time.Hour }) // never reads again
	_ = shown(t, of, "A1")
	ann := fan(t, pool, "ann")
	h, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := shown(t, of, "A1"); s != SeatHeld {
		t.Errorf("right after the hold: %s", s)
	}
	waitUntil(t, h.ExpiresAt.Add(50*time.Millisecond))
	if s := shown(t, of, "A1"); s != SeatAvailable {
		t.Errorf("after the expiry: %s", s)
	}
	h, _, err = of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A2"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := of.ReleaseHold(ctx, ann, h.ID); err != nil {
		t.Fatal(err)
	}
	if s := shown(t, of, "A2"); s != SeatAvailable {
		t.Errorf("after the release: %s", s)
	}
	of.SeatsChanged("show", []string{"A3"}, SeatBooked, 0)
	if s := shown(t, of, "A3"); s != SeatBooked {
		t.Errorf("told of a booking: %s", s)
	}
}

// A read whose snapshot is older than an own commit must not undo it on the map.
func TestALateReadDoesNotUndoAnOwnCommit(t *testing.T) {
	t.Parallel()
	layout, _ := hall("oo")
	w := &watch{layout: layout, states: make([]seatState, 2), until: make([]time.Time, 2)}
	m := &mapCache{maps: map[string]*watch{"show": w}}
	begun := time.Now()
	m.apply("show", []string{"A1"}, seatHeld, time.Minute)
	w.store(&Showtime{ID: "show"}, layout, make([]seatState, 2), make([]time.Time, 2), begun)
	if s := w.now(0, time.Now()); s != seatHeld {
		t.Errorf("A1 is %s", s)
	}
	w.store(&Showtime{ID: "show"}, layout, make([]seatState, 2), make([]time.Time, 2), time.Now())
	if s := w.now(0, time.Now()); s != seatFree || len(w.recent) != 0 {
		t.Errorf("a later read is the truth: A1 is %s, %d changes kept", s, len(w.recent))
	}
}

// B7: the box office adds seats to a sold-out showtime.
func TestB7_AddedSeatsAreOnSaleWithinASecond(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{Rows: 2, PerRow: 5})
	bookingtest.Leave(t, pool, "show", 0)
	bookingtest.Seed(t, pool, bookingtest.Hall{Rows: 2, PerRow: 10, Showtime: "larger"}) // the layout to come
	of, ann := office(t, pool), fan(t, pool, "ann")
	ask := HoldRequest{ShowtimeID: "show", Seats: []string{"B9", "B10"}}
	if _, _, err := of.Hold(ctx, ann, ask); !errors.Is(err, ErrUnknownSeat) {
		t.Fatalf("before: %v", err)
	}
	if _, err := pool.Exec(ctx, `WITH l AS (UPDATE showtime SET layout_id = (SELECT layout_id FROM showtime WHERE showtime_id = 'larger')
		WHERE showtime_id = 'show' RETURNING layout_id)
		INSERT INTO show_seat (showtime_id, seat_code) SELECT 'show', seat_code FROM layout_seat JOIN l USING (layout_id) ON CONFLICT DO NOTHING`); err != nil {
		t.Fatal(err)
	}
	added := time.Now()
	for {
		_, _, err := of.Hold(ctx, ann, ask)
		if err == nil {
			break
		}
		if time.Since(added) > 3*time.Second {
			t.Fatalf("still %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if s := shown(t, of, "B10"); s != SeatHeld {
		t.Errorf("the map shows B10 %q", s)
	}
}

func TestAMapNobodyAsksForIsForgotten(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	_ = shown(t, of, "A1")
	of.maps.evict(time.Now())
	if len(of.maps.maps) != 1 {
		t.Error("forgotten at once")
	}
	of.maps.evict(time.Now().Add(2 * mapIdle))
	if len(of.maps.maps) != 0 {
		t.Error("kept for ever")
	}
	if _, err := of.SeatMap(context.Background(), "nothing"); !errors.Is(err, ErrUnknownShowtime) || len(of.maps.maps) != 0 {
		t.Errorf("an unknown name: %v, %d maps in memory", err, len(of.maps.maps))
	}
}
