package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"usher/booking"
	"usher/booking/bookingtest"
)

const drawnRoom = `rooms:
  - id: arena
    title: Arena
    mode: %s
    ratePerMinute: 60
    cap: 10
    timezone: Europe/Lisbon
    gathersAt: %s
    opensAt: 2030-10-27T01:30:00+00:00
`

func TestADrawnRoomsSchedule(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := bookingtest.Pool(t)
	rooms := booking.NewRooms(pool)
	apply := func(mode, gathers string) (Summary, error) {
		t.Helper()
		f, err := Parse("arena.yaml", fmt.Appendf(nil, drawnRoom, mode, gathers))
		if err != nil {
			t.Fatal(err)
		}
		return Apply(ctx, pool, f, "ann")
	}
	if _, err := apply("draw", "2030-10-26 20:00"); err != nil {
		t.Fatal(err)
	}
	r, err := rooms.Get(ctx, "arena")
	if err != nil || r.State != "scheduled" || r.Timezone != "Europe/Lisbon" || r.GathersAt.Format(time.RFC3339) != "2030-10-26T19:00:00Z" ||
		r.OpensAt.Format(time.RFC3339) != "2030-10-27T01:30:00Z" || r.Draw.Seed == (booking.DrawSeed{}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if s, err := apply("draw", "2030-10-26 20:00"); err != nil || s.Changed() {
		t.Errorf("again: %v, %v", s, err)
	}
	if s, err := apply("draw", "2030-10-26 21:00"); err != nil || !strings.Contains(s.String(), "gathersAt 2030-10-26T19:00:00Z → 2030-10-26T20:00:00Z") {
		t.Errorf("moved: %v, %v", s, err)
	}
	after, _ := rooms.Get(ctx, "arena")
	if after.Draw.Seed != r.Draw.Seed || after.Version <= r.Version {
		t.Errorf("the seed changed with the schedule, or the version (%d after %d) did not", after.Version, r.Version)
	}
	// Those in line were told that there is a draw.
	change, _ := booking.RoomVerb("gather")
	if _, err := rooms.Change(ctx, "ann", "arena", change); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("arena.yaml", []byte("rooms:\n  - {id: arena, title: Arena, ratePerMinute: 60, cap: 10}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var faults Faults
	if _, err := Apply(ctx, pool, f, "ann"); !errors.As(err, &faults) || !strings.Contains(err.Error(), "arena is gathering") {
		t.Errorf("a gathering became a fifo line: %v", err)
	}
}
