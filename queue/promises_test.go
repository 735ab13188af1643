package queue

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestPromisesAreSettledByTheWatermark(t *testing.T) {
	t.Parallel()
	var p promises
	start := time.Unix(1000, 0)
	for i := range 4 {
		version := int64(1)
		if i == 3 {
			version = 2 // the operator changed the room after it
		}
		p.made(int64(10*i+10), ETA{Low: time.Minute, High: 2 * time.Minute}, version, start.Add(time.Duration(i)*time.Minute))
	}
	got := map[string]int{}
	count := func(o string) { got[o]++ }
	p.settle(upTo(5), 1, start.Add(10*time.Second), count)
	if len(got) != 0 || len(p.open) != 3 {
		t.Fatalf("%v settled, %d open: one was made under other settings", got, len(p.open))
	}
	p.settle(upTo(20), 1, start.Add(100*time.Second), count) // after 100 s and 40 s
	p.settle(upTo(30), 1, start.Add(10*time.Minute), count)
	if got["inside"] != 1 || got["early"] != 1 || got["late"] != 1 || len(p.open) != 0 {
		t.Errorf("%v, %d open", got, len(p.open))
	}
	for i := range 5000 {
		p.made(int64(i), ETA{}, 1, start.Add(time.Hour+time.Duration(i)*500*time.Millisecond))
	}
	if len(p.open) != keptPromises {
		t.Errorf("%d promises are remembered", len(p.open))
	}
	if a, b := p.open[0].at, p.open[1].at; b.Sub(a) < promiseEvery {
		t.Errorf("two promises %s apart", b.Sub(a))
	}
}

// Through the real scripts: a fan is promised seconds, called within them, and counted.
func TestTheTrackRecordOfPromises(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l := newLine(t, dial(t, ""), func(o *Options) { o.Registerer = reg })
	room := openRoom(t, l, 60_000, 1000)
	refresh(t, l, room) // with the report: without one nothing is promised
	if v := join(t, l, room, "fan"); v.ETA == nil {
		t.Fatalf("no promise: %+v", v)
	}
	if n := counted(t, reg, "usher_queue_eta_promises_total"); n != 0 {
		t.Fatalf("%v settled before the call", n)
	}
	step(t, l, room)
	if n := counted(t, reg, "usher_queue_eta_promises_total"); n != 1 {
		t.Errorf("%v settled after the call", n)
	}
}

func upTo(mark int64) func(int64) bool { return func(score int64) bool { return score <= mark } }
