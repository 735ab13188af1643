package catalog

import (
	"context"
	"testing"
	"time"

	"usher/booking/bookingtest"
)

// The demonstrations are the first thing a newcomer sees: what they promise is
// pinned here.
func TestDemos(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := bookingtest.Pool(t)
	var versions []int64
	for range 2 {
		began := time.Now()
		if err := ApplyDemos(ctx, pool); err != nil {
			t.Fatal(err)
		}
		t.Logf("applied in %s", time.Since(began))
		versions = append(versions, one[int64](t, pool, `SELECT max(version) FROM room`))
	}
	for id, want := range map[string]struct{ lo, hi, showtimes int }{
		"salt-road": {180, 180, 2}, "northern-lights-tour": {19_500, 20_500, 1}, "quiet-machines": {12, 12, 1},
	} {
		e, err := Show(ctx, pool, id)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Times) != want.showtimes {
			t.Errorf("%s has %d showtimes, want %d", id, len(e.Times), want.showtimes)
		}
		for _, s := range e.Times {
			if s.Seats < want.lo || s.Seats > want.hi || s.Free != s.Seats {
				t.Errorf("%s has %d seats, %d free", s.ID, s.Seats, s.Free)
			}
			if !s.StartsAt.After(time.Now()) {
				t.Errorf("%s starts in the past: %s", s.ID, s.StartsAt)
			}
		}
	}
	if rows := one[int](t, pool, `SELECT count(*) FROM audit_log`); rows != 3 || versions[0] != versions[1] {
		t.Errorf("a second apply left traces: %d audit rows, room versions %v", rows, versions)
	}
}
