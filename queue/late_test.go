package queue

import (
	"errors"
	"testing"
	"time"
)

// stampOf is when the room's report was stamped, µs.
func stampOf(t testing.TB, l *Line, room string) int64 {
	t.Helper()
	return refresh(t, l, room).report
}

// Only news makes a report fresh: the same one again, an older one and one that was
// read too long ago leave the stamp as it is. Clocks that differ are no lateness.
func TestOnlyNewsIsFresh(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""), func(o *Options) { o.ReportTTL = 5 * time.Second })
	room := openRoom(t, l, 600, 10)
	skew := time.Now().Add(-3 * time.Hour) // the database's clock is three hours behind
	seq, told := int64(1000), 100
	put := func(name string, seq int64, at time.Time, fresh bool) {
		t.Helper()
		told++
		before := stampOf(t, l, room)
		err := l.PutReport(t.Context(), room, Report{At: at, Seq: seq, Available: told, Total: 9999})
		if err != nil && !errors.Is(err, ErrLateReport) {
			t.Fatalf("%s: %v", name, err)
		}
		b := refresh(t, l, room)
		if took := b.report > before; took != fresh {
			t.Errorf("%s: taken %v, want %v", name, took, fresh)
		}
		if fresh != (b.view.Available == told) {
			t.Errorf("%s: %d are told as left", name, b.view.Available)
		}
	}
	since := time.Now()
	now := func() time.Time { return skew.Add(time.Since(since)) }
	put("the first", seq, now(), true)
	put("the same again", seq, now(), false)
	put("an older one", seq-1, now(), false)
	put("the next", seq+1, now(), true)
	put("read eight seconds ago", seq+2, now().Add(-8*time.Second), false)
	put("read eight seconds ago, too", seq+3, now().Add(-8*time.Second), false)
	put("in time", seq+4, now(), true)
	if err := l.PutReport(t.Context(), room, Report{At: now().Add(-time.Minute), Seq: seq + 5}); !errors.Is(err, ErrLateReport) {
		t.Errorf("a late one: %v", err)
	}
	put("a clock that went on", seq+6, now().Add(time.Hour), true)
}

// The database's clock is set back by an hour, or another database answers: for one
// report's life nobody is called, then what goes on as time does is believed.
func TestADatabaseClockThatWentBackIsBelievedAfterASilence(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""), func(o *Options) { o.ReportTTL = 800 * time.Millisecond })
	room := openRoom(t, l, 600, 10)
	put := func(at time.Time) bool {
		t.Helper()
		before := stampOf(t, l, room)
		if err := l.PutReport(t.Context(), room, Report{At: at, Seq: at.UnixMicro()}); err != nil && !errors.Is(err, ErrLateReport) {
			t.Fatal(err)
		}
		return stampOf(t, l, room) > before
	}
	if !put(time.Now()) {
		t.Fatal("the first is not taken")
	}
	back := time.Now()
	eventually(t, 10*time.Second, "the clock of before is forgotten", func() bool { return put(time.Now().Add(-time.Hour)) })
	if took := time.Since(back); took < 700*time.Millisecond {
		t.Errorf("believed after %s", took)
	}
	if !put(time.Now().Add(-time.Hour)) {
		t.Error("the next one is not taken")
	}
	// One old report, again and again, is never a stream.
	old := time.Now().Add(-2 * time.Hour)
	time.Sleep(900 * time.Millisecond) // the silence itself is the case
	for range 3 {
		if put(old) {
			t.Error("a report that was sent again and again is fresh")
		}
	}
}
