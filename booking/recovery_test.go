package booking

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"usher/booking/bookingtest"
)

func TestOnlyTheFirstMemoryOfALineIsFirst(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	var room string
	if err := pool.QueryRow(ctx, `SELECT min(room_id) FROM room`).Scan(&room); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		incarnation int64
		first       bool
	}{{7, true}, {7, true}, {9, false}, {9, false}, {7, false}} {
		if first, err := of.FirstMemory(ctx, room, c.incarnation); err != nil || first != c.first {
			t.Errorf("memory %d is the first: %v, %v", c.incarnation, first, err)
		}
	}
	if first, err := of.FirstMemory(ctx, "another", 9); err != nil || !first {
		t.Errorf("another room's first memory: %v, %v", first, err)
	}
}

func TestServedPlacesArePagedAndWhole(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	var room string
	if err := pool.QueryRow(ctx, `SELECT min(room_id) FROM room`).Scan(&room); err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		id, err := uuid.NewV7()
		if err != nil {
			t.Fatal(err)
		}
		old := 0 // days
		if i == 3 {
			old = 31
		}
		var ended *string
		switch i {
		case 4:
			ended = new("revoked")
		case 5:
			ended = new("expired")
		}
		if _, err := pool.Exec(ctx, `INSERT INTO session (session_id, jti, room_id, place_id, customer_id, created_at, expires_at, ended_at, end_reason)
			VALUES ($1, $2, $3, $4, 'c', now() - make_interval(days => $5::int), now(), CASE WHEN $6::text IS NOT NULL THEN now() END, $6)`,
			id.String(), fmt.Sprint("j", i), room, fmt.Sprint("place-", i), old, ended); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	pages := 0
	for after := ""; ; pages++ {
		visits, next, err := of.Served(ctx, room, after, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range visits {
			got[v.PlaceID]++
			if v.Began.IsZero() {
				t.Errorf("%s began never", v.PlaceID)
			}
		}
		if after = next; next == "" {
			break
		}
	}
	if len(got) != 23 || got["place-3"] != 0 || got["place-4"] != 0 || pages != 2 {
		t.Errorf("%d places in %d pages: %v", len(got), pages+1, got)
	}
	for p, n := range got {
		if n != 1 {
			t.Errorf("%s was told %d times", p, n)
		}
	}
	if visits, next, err := of.Served(ctx, "another", "", 100); err != nil || len(visits) != 0 || next != "" {
		t.Errorf("another room: %v %q %v", visits, next, err)
	}
}
