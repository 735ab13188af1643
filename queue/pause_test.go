package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestQ9_APauseStopsEveryEdgeWithinASecond(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	lines := []*Line{newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], 600, 1000)
	tokens := crowd(t, lines[0], room, 300)
	run(t, room, lines...)
	eventually(t, 5*time.Second, "somebody is called", func() bool { return status(t, lines[1], room, tokens[0]).Status == Called })
	for _, token := range tokens[:50] { // many stand by
		_, _ = lines[1].Claim(t.Context(), room, token)
	}
	eventually(t, 5*time.Second, "some are admitted", func() bool { return len(slotsOf(t, lines[0], room)) > 3 })

	set(t, lines[0], room, func(s *Settings) { s.State = "paused" })
	stopped := time.Now()
	called, err := rdb.ZCard(t.Context(), lines[0].own(room).keys[kCalled]).Result()
	if err != nil {
		t.Fatal(err)
	}
	before := len(slotsOf(t, lines[0], room))
	// A fan who was admitted before the pause still gets the pass.
	if _, err := lines[1].Claim(t.Context(), room, tokens[0]); err != nil {
		t.Errorf("admitted before the pause, asked after it: %v", err)
	}
	if _, err := lines[1].Claim(t.Context(), room, tokens[40]); !errors.Is(err, ErrRoomPaused) && !isStandBy(err) {
		t.Errorf("claim in a paused room: %v", err)
	}
	eventually(t, 5*time.Second, "the other edge tells of the pause", func() bool {
		v, err := lines[1].Room(room)
		return err == nil && v.State == "paused"
	})
	if took := time.Since(stopped); took > 2*time.Second {
		t.Errorf("the other edge showed the pause after %s", took)
	}
	for _, at := range grantsOf(t, lines[0], room) {
		if time.UnixMicro(at).After(stopped.Add(time.Second)) {
			t.Errorf("an admission %s after the pause", time.UnixMicro(at).Sub(stopped))
		}
	}
	after, err := rdb.ZCard(t.Context(), lines[0].own(room).keys[kCalled]).Result()
	if err != nil || after > called || len(slotsOf(t, lines[0], room)) != before {
		t.Errorf("after the pause %d called (before %d), %d inside (before %d), %v",
			after, called, len(slotsOf(t, lines[0], room)), before, err)
	}
	set(t, lines[1], room, func(s *Settings) { s.State = "open" })
	eventually(t, 5*time.Second, "it goes on", func() bool { return len(slotsOf(t, lines[0], room)) > before })
}

func TestAPauseCostsNobodyTheirCall(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""), func(o *Options) { o.ClaimWindow = 50 * time.Millisecond })
	room := openRoom(t, l, 600, 10)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	set(t, l, room, func(s *Settings) { s.State = "paused" })
	due, err := l.rdb.ZScore(t.Context(), l.own(room).keys[kDue], memberOf(t, l, room, fan.Token)).Result()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the window is over", func() bool { return time.Now().UnixMicro() > int64(due) })
	step(t, l, room)
	other := join(t, l, room, "other") // waits, as nobody is called now
	if v := status(t, l, room, other.Token); v.Status != Waiting {
		t.Errorf("called during the pause: %+v", v)
	}
	l.opts.ClaimWindow = time.Minute // the grace after the pause
	set(t, l, room, func(s *Settings) { s.State = "open" })
	step(t, l, room)
	if v := status(t, l, room, fan.Token); v.Status != Called || time.Until(v.CalledUntil) < 30*time.Second {
		t.Errorf("after the pause: %+v", v)
	}
}

func TestAClaimInAPausedRoomStandsBy(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	set(t, l, room, func(s *Settings) { s.State = "paused" })
	if _, err := l.Claim(t.Context(), room, fan.Token); !errors.Is(err, ErrRoomPaused) {
		t.Fatalf("claim: %v", err)
	}
	step(t, l, room)
	if v := status(t, l, room, fan.Token); v.Status != Called || !v.StandingBy {
		t.Errorf("%+v", v)
	}
	set(t, l, room, func(s *Settings) { s.State = "open" })
	step(t, l, room)
	claim(t, l, room, fan.Token)
}

func TestWithoutAFreshReportNobodyIsCalledOrAdmitted(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10)
	first, second := join(t, l, room, "first"), join(t, l, room, "second")
	state := l.own(room).keys[kState]
	old := fmt.Sprint(time.Now().Add(-l.opts.ReportTTL - time.Second).UnixMicro())
	stale := func() { l.rdb.HSet(t.Context(), state, "report", old) }
	stale()
	step(t, l, room)
	if b := refresh(t, l, room); b.view.Called != 0 || l.roomView(b).InventoryOK {
		t.Errorf("%d called without a report, inventory shown as known: %v", b.view.Called, l.roomView(b).InventoryOK)
	}
	report(t, l, room)
	step(t, l, room)
	claim(t, l, room, first.Token)
	stale()
	for start := time.Now(); time.Since(start) < 5*time.Millisecond; { // the rate's turn comes meanwhile
		if _, err := l.Claim(t.Context(), room, second.Token); !isStandBy(err) {
			t.Fatalf("claim without a report: %v", err)
		}
	}
	step(t, l, room)
	if n := len(slotsOf(t, l, room)); n != 1 {
		t.Errorf("%d inside", n)
	}
	report(t, l, room)
	eventually(t, 5*time.Second, "the stand-by is admitted", func() bool {
		step(t, l, room)
		_, err := l.Claim(t.Context(), room, second.Token)
		return err == nil
	})
}
