package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"usher/admission/pass"
)

func TestRunEndsWithItsContextAndLeavesNothingBehind(t *testing.T) {
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	openRoom(t, l, 60, 1)
	before := goleak.IgnoreCurrent()
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("Run does not end")
		}
	}
	goleak.VerifyNone(t, before)
}

func TestMetricsCountWhatHappened(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l := newLine(t, dial(t, ""), func(o *Options) { o.Registerer = reg })
	room := openRoom(t, l, 60, 1)
	a, b := join(t, l, room, "a"), join(t, l, room, "b")
	join(t, l, room, "a")
	step(t, l, room)
	claim(t, l, room, a.Token)
	claim(t, l, room, a.Token)
	freeAll(t, l, room)
	step(t, l, room)
	_, _ = l.Claim(t.Context(), room, b.Token) // the rate's turn has not come
	_, _ = l.Claim(t.Context(), room, b.Token)
	refresh(t, l, room)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		known := strings.HasPrefix(f.GetName(), "usher_queue_") || strings.HasPrefix(f.GetName(), "usher_valve_")
		if !known || f.GetHelp() == "" {
			t.Errorf("metric %s", f.GetName())
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, p := range m.GetLabel() {
				labels[p.GetName()] = p.GetValue()
			}
			if labels["room"] == room {
				got[f.GetName()+labels["status"]] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	for name, n := range map[string]float64{
		"joins_total": 2, "invitations_total": 2, "admissions_total": 1, "standbys_total": 1, "releases_total": 1,
		"fansstanding_by": 1, "fanswaiting": 0, "fansinside": 0, "rate_per_minute": 60, "cap": 1,
	} {
		if got["usher_queue_"+name] != n {
			t.Errorf("%s: got %v, want %v", name, got["usher_queue_"+name], n)
		}
	}
}

// A slot must not be free while a session that came of it may still hold seats.
func TestTheLeaseCoversTheLongestSession(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 1)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	a := claim(t, l, room, fan.Token)
	lease, err := l.rdb.ZScore(t.Context(), l.own(room).keys[kInside], memberOf(t, l, room, fan.Token)).Result()
	if err != nil {
		t.Fatal(err)
	}
	last := a.ExpiresAt.Add(pass.Leeway + pass.LongestSession)
	if end := time.UnixMicro(int64(lease)); end.Before(last) {
		t.Errorf("the slot is free at %s, a session may last until %s", end, last)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	for name, o := range map[string]Options{
		"no secret":            {},
		"a short secret":       {PlaceSecrets: [][]byte{testSecret, []byte("short")}},
		"a negative duration":  {PlaceSecrets: [][]byte{testSecret}, Tick: -1},
		"pass outlives lease":  {PlaceSecrets: [][]byte{testSecret}, PassLife: time.Hour},
		"pass under 2 seconds": {PlaceSecrets: [][]byte{testSecret}, PassLife: time.Second},
	} {
		if _, err := New(rdb, o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
