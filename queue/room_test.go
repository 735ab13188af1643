package queue

import (
	"errors"
	"fmt"
	"testing"
)

func TestAnOlderVersionNeverOverwritesANewer(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 1, func(s *Settings) { s.Version = 7 })
	old := Settings{Room: room, Title: "old", Mode: "fifo", State: "closed", RatePerMinute: 1, Cap: 1, Run: 1, Version: 6}
	for _, version := range []int64{6, 7} {
		old.Version = version
		if err := l.PutSettings(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if v, _ := l.Room(room); v.State != "open" || v.Title != "Hall" {
			t.Errorf("version %d was taken over 7: %+v", version, v)
		}
	}
	if err := l.PutSettings(t.Context(), Settings{Room: "Not a name", Mode: "fifo", State: "open", Run: 1, Version: 1}); err == nil {
		t.Error("a name that breaks keys and cookies was taken")
	}
}

func TestAClosedRoomKeepsItsPlaces(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 1)
	fan := join(t, l, room, "fan")
	for _, change := range []func(*Settings){
		func(s *Settings) { s.State = "closed" },
		func(s *Settings) { s.State, s.Mode = "open", "reject" },
	} {
		set(t, l, room, change)
		if _, err := l.Join(t.Context(), room, Fan{ID: "new"}); !errors.Is(err, ErrRoomClosed) {
			t.Errorf("a newcomer: %v", err)
		}
		if v := join(t, l, room, "fan"); v.Position != 1 || v.Token != fan.Token {
			t.Errorf("the place of before: %+v", v)
		}
		step(t, l, room)
		if v := status(t, l, room, fan.Token); v.Status != Waiting || v.ETA != nil {
			t.Errorf("status: %+v", v)
		}
		if _, err := l.Claim(t.Context(), room, fan.Token); !errors.Is(err, ErrRoomClosed) {
			t.Errorf("claim: %v", err)
		}
	}
}

func TestPassthroughHasNoLine(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 0)
	waited := join(t, l, room, "waited")
	set(t, l, room, func(s *Settings) { s.Mode = "passthrough" })
	l.rdb.HDel(t.Context(), l.own(room).keys[kState], "report") // needs no report either
	for i := range 5 {
		v := join(t, l, room, fmt.Sprint(i))
		if v.Status != Called {
			t.Fatalf("joined: %+v", v)
		}
		if v := status(t, l, room, v.Token); v.Status != Called {
			t.Fatalf("polled: %+v", v)
		}
		claim(t, l, room, v.Token)
	}
	claim(t, l, room, waited.Token)
	if b := refresh(t, l, room); b.view.Inside != 6 {
		t.Errorf("%d inside", b.view.Inside)
	}
}

func TestAResetEndsAllPlaces(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 5)
	old, behind := join(t, l, room, "fan"), join(t, l, room, "behind")
	step(t, l, room)
	claim(t, l, room, old.Token)
	set(t, l, room, func(s *Settings) { s.Run = 2 })
	for name, err := range map[string]error{
		"status": func() error { _, err := l.Status(t.Context(), room, behind.Token, 0); return err }(),
		"claim":  func() error { _, err := l.Claim(t.Context(), room, behind.Token); return err }(),
		"leave":  l.Leave(t.Context(), room, behind.Token),
	} {
		if !errors.Is(err, ErrOldRun) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b := refresh(t, l, room); b.view.Waiting+b.view.Called != 0 || b.view.Inside != 1 {
		t.Errorf("after the reset: %d waiting, %d called, %d inside", b.view.Waiting, b.view.Called, b.view.Inside)
	}
	if v := join(t, l, room, "behind"); v.Position != 1 || !v.Created {
		t.Errorf("joined the new line: %+v", v)
	}
}

func TestUnknownRoomsAndNames(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	for _, name := range []string{"", "nobody-made-it", "{x}", "a:b", "UPPER", "../x"} {
		if _, err := l.Join(t.Context(), name, Fan{ID: "x"}); !errors.Is(err, ErrUnknownRoom) {
			t.Errorf("join %q: %v", name, err)
		}
		if _, err := l.Room(name); !errors.Is(err, ErrUnknownRoom) {
			t.Errorf("room %q: %v", name, err)
		}
	}
	if err := l.PutReport(t.Context(), "nobody-made-it", Report{}); !errors.Is(err, ErrUnknownRoom) {
		t.Errorf("report: %v", err)
	}
}

// An edge that never heard of a room finds it at the first request for it.
func TestAnotherEdgeFindsTheRoom(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	a, b := newLine(t, rdb), newLine(t, rdb)
	room := openRoom(t, a, 60, 1)
	fan := join(t, a, room, "fan")
	if v := status(t, b, room, fan.Token); v.Position != 1 || v.Room.Title != "Hall" {
		t.Errorf("seen from the other edge: %+v", v)
	}
}

func TestScriptsSurviveAColdCache(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	if err := l.loadScripts(t.Context()); err != nil {
		t.Fatal(err)
	}
	room := openRoom(t, l, 60, 5)
	flush := func() {
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	fan := join(t, l, room, "fan")
	flush()
	step(t, l, room)
	flush()
	claim(t, l, room, fan.Token)
	flush()
	report(t, l, room)
	flush()
	freeAll(t, l, room)
	flush()
	if err := l.Leave(t.Context(), room, fan.Token); err != nil {
		t.Fatal(err)
	}
	flush()
	set(t, l, room, func(s *Settings) { s.Cap = 6 })
	flush()
	refresh(t, l, room)
}

// A booking role that moved to another address keeps its rooms' rows: the address
// follows without a new version, or every called fan is sent to nowhere.
func TestBookingURLMovesWithoutAVersion(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 1)
	s := Settings{
		Room: room, Title: "Hall", Mode: "fifo", State: "open", RatePerMinute: 60, Cap: 1, Run: 1, Version: 1,
		BookingURL: "http://moved.test",
	}
	if err := l.PutSettings(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if v, err := l.Room(room); err != nil || v.BookingURL != "http://moved.test" {
		t.Errorf("booking URL %q, %v", v.BookingURL, err)
	}
}
