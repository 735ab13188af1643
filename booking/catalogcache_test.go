package booking

import (
	"context"
	"testing"
	"unsafe"

	"usher/booking/bookingtest"
)

// A server reuses the buffer a request's strings lie in. What the cache remembers
// must not change with it.
func TestTheCacheKeepsNoStringOfItsCaller(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{Room: "room"})
	bookingtest.Seed(t, pool, bookingtest.Hall{Room: "hall", Showtime: "play"})
	of := office(t, pool)
	buffer := []byte("room")
	reused := unsafe.String(&buffer[0], len(buffer)) //nolint:gosec // it is what a server does
	if list, err := of.Showtimes(ctx, reused); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	copy(buffer, "show")
	if _, err := of.SeatMap(ctx, reused); err != nil {
		t.Fatal(err)
	}
	copy(buffer, "hall")
	of.catalog.mu.Lock()
	defer of.catalog.mu.Unlock()
	for id := range of.catalog.lists {
		if id != "room" {
			t.Errorf("the list of room is remembered under %q", id)
		}
	}
	for id := range of.catalog.showtimes {
		if id != "show" {
			t.Errorf("show is remembered under %q", id)
		}
	}
	for id := range of.maps.maps {
		if id != "show" {
			t.Errorf("the map of show is remembered under %q", id)
		}
	}
}

func TestIdsTheDatabaseWouldNotHear(t *testing.T) {
	t.Parallel()
	pool, ctx := bookingtest.Pool(t), context.Background()
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	of := office(t, pool)
	for _, id := range []string{"\x00", "\xff", "Room", "no room"} {
		if list, err := of.Showtimes(ctx, id); err != nil || len(list) != 0 {
			t.Errorf("%q: %v, %v", id, list, err)
		}
		if _, err := of.SeatMap(ctx, id); err != ErrUnknownShowtime { //nolint:errorlint // returned bare
			t.Errorf("%q: %v", id, err)
		}
	}
	ann := fan(t, pool, "ann")
	h, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}})
	if err != nil {
		t.Fatal(err)
	}
	// A spelling of a uuid that the database does not know.
	if got, err := of.GetHold(ctx, ann, "urn:uuid:"+h.ID); err != nil || got.ID != h.ID {
		t.Errorf("%+v, %v", got, err)
	}
}
