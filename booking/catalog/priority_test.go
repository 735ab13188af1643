package catalog

import (
	"context"
	"strings"
	"testing"

	"usher/booking"
	"usher/booking/bookingtest"
)

// The file wins for the share when it tells one; else an operator's stays.
func TestAPriorityShareInTheFile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := bookingtest.Pool(t)
	rooms := booking.NewRooms(pool)
	for i, c := range []struct {
		line    string
		want    int
		changed string
	}{
		{"", 30, "created"}, {"    priorityShare: 0\n", 0, "priorityShare 30 → 0"}, {"    priorityShare: 0\n", 0, ""},
		{"", 0, ""}, {"    priorityShare: 100\n", 100, "priorityShare 0 → 100"},
	} {
		f, err := Parse("hall.yaml", []byte("rooms:\n  - id: hall\n    title: Hall\n    ratePerMinute: 60\n    cap: 10\n"+c.line))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Apply(ctx, pool, f, "ann")
		if err != nil || !strings.Contains(s.String(), c.changed) || s.Changed() != (c.changed != "") {
			t.Errorf("%d: %s, %v", i, s, err)
		}
		if r, err := rooms.Get(ctx, "hall"); err != nil || r.PriorityShare != c.want {
			t.Errorf("%d: %+v, %v", i, r, err)
		}
	}
	share := 45
	if _, err := rooms.Change(ctx, "ann", "hall", booking.RoomChange{PriorityShare: &share}); err != nil {
		t.Fatal(err)
	}
	f, err := Parse("hall.yaml", []byte("rooms:\n  - {id: hall, title: Hall, ratePerMinute: 60, cap: 10}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Apply(ctx, pool, f, "ann"); err != nil || s.Changed() {
		t.Errorf("%s, %v", s, err)
	}
}
