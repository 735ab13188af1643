package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"usher/internal/devstack/devstacktest"
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

func TestReportsFreeWhatEnded(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10)
	tokens := crowd(t, l, room, 4)
	var a []Admission
	step(t, l, room)
	for _, token := range tokens {
		eventually(t, 5*time.Second, "admission", func() bool {
			step(t, l, room)
			adm, err := l.Claim(t.Context(), room, token)
			if err == nil {
				a = append(a, adm)
			}
			return err == nil
		})
	}
	ref := func(i int) SlotRef { return SlotRef{PlaceID: a[i].PlaceID, JTI: a[i].JTI} }
	inside := func() string {
		out := ""
		slots := slotsOf(t, l, room)
		for i, token := range tokens {
			if _, ok := slots[memberOf(t, l, room, token)]; ok {
				out += fmt.Sprint(i)
			}
		}
		return out
	}
	put := func(r Report) {
		t.Helper()
		if err := l.PutReport(t.Context(), room, r); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	put(Report{At: now, Living: []SlotRef{ref(0)}, Ended: []SlotRef{ref(1)}})
	if got := inside(); got != "023" {
		t.Errorf("an ended session: inside %s, want 023", got)
	}
	// A visit is known by place and pass: an ended one of before ends no other.
	put(Report{At: now, Ended: []SlotRef{{PlaceID: a[2].PlaceID, JTI: "another"}}})
	if got := inside(); got != "023" {
		t.Errorf("an ended session of another pass: inside %s, want 023", got)
	}
	put(Report{At: a[2].ExpiresAt.Add(6 * time.Second), Living: []SlotRef{ref(0), ref(2)}})
	if got := inside(); got != "023" {
		t.Errorf("within the margin: inside %s, want 023", got)
	}
	put(Report{At: a[2].ExpiresAt.Add(10 * time.Second), Living: []SlotRef{ref(0), ref(2)}})
	if got := inside(); got != "02" {
		t.Errorf("an unused pass: inside %s, want 02", got)
	}
	if b := refresh(t, l, room); b.turn <= 0 {
		t.Error("no length of a visit was learnt")
	}
}

// An old report, read before the fan was admitted anew, must not free the new slot.
func TestAReportNeverFreesASlotGrantedMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10)
	r := l.own(room)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	claim(t, l, room, fan.Token)
	m := memberOf(t, l, room, fan.Token)
	asRead := slotsOf(t, l, room)[m]
	old := []freed{{member: m, jti: asRead.jti, expires: asRead.expires}}
	if err := l.release(t.Context(), r, old); err != nil {
		t.Fatal(err)
	}
	again := join(t, l, room, "fan")
	eventually(t, 5*time.Second, "admitted anew", func() bool {
		step(t, l, room)
		_, err := l.Claim(t.Context(), room, again.Token)
		return err == nil
	})
	if err := l.release(t.Context(), r, old); err != nil { // the same old report once more
		t.Fatal(err)
	}
	if _, ok := slotsOf(t, l, room)[m]; !ok {
		t.Fatal("the new slot was freed by an old report")
	}
	// Likewise a pass that was renewed: same id, other expiry.
	expire(t, l, room, m)
	unused := slotsOf(t, l, room)[m]
	claim(t, l, room, again.Token)
	if err := l.release(t.Context(), r, []freed{{member: m, jti: unused.jti, expires: unused.expires}}); err != nil {
		t.Fatal(err)
	}
	if _, ok := slotsOf(t, l, room)[m]; !ok {
		t.Error("a renewed pass' slot was freed by what was read before")
	}
}

func TestALeaseEndsByItself(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 1)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	claim(t, l, room, fan.Token)
	m := memberOf(t, l, room, fan.Token)
	if err := l.rdb.ZAdd(t.Context(), l.own(room).keys[kInside], z(time.Now().Add(-time.Second).UnixMicro(), m)).Err(); err != nil {
		t.Fatal(err)
	}
	if v := status(t, l, room, fan.Token); v.Status != Expired {
		t.Errorf("status %s", v.Status)
	}
	step(t, l, room)
	if n := len(slotsOf(t, l, room)); n != 0 {
		t.Errorf("%d slots", n)
	}
	if v := join(t, l, room, "fan"); !v.Created {
		t.Errorf("joined after the visit: %+v", v)
	}
}

func TestBoardsAnswerFromMemoryAndNeverTellAHigherNumber(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	const fans = 5000
	room := openRoom(t, l, 600, 10)
	tokens := crowd(t, l, room, fans)
	step(t, l, room) // ten are called
	refresh(t, l, room)
	count := &calls{}
	rdb.AddHook(count)
	worst := 0
	for i := 10; i < fans; i++ {
		v := status(t, l, room, tokens[i])
		off := v.Position - (i - 10 + 1)
		if v.Status != Waiting || v.Position < 1 || v.Ahead != v.Position-1 {
			t.Fatalf("place %d: %+v", i, v)
		}
		if i < exactRanks && off != 0 {
			t.Fatalf("place %d near the head is told %d", i, v.Position)
		}
		worst = max(worst, off, -off)
	}
	if worst > fans/sampleRanks*2 {
		t.Errorf("a number was off by %d", worst)
	}
	if n := count.n.Load(); n != 0 {
		t.Errorf("%d Redis calls for %d polls above the watermark", n, fans-10)
	}
	if v := status(t, l, room, tokens[3]); v.Status != Called {
		t.Errorf("at the head: %+v", v)
	}
	if n := count.n.Load(); n != 1 {
		t.Errorf("%d Redis calls for a poll at the watermark, want 1", n)
	}
	v, err := l.Status(t.Context(), room, tokens[4000], 17)
	if err != nil || v.Position != 17 {
		t.Errorf("shown 17 before, now %d, %v", v.Position, err)
	}
	// A place that left is not told its former number.
	if err := l.Leave(t.Context(), room, tokens[4000]); err != nil {
		t.Fatal(err)
	}
	refresh(t, l, room)
	if v := status(t, l, room, tokens[4000]); v.Status != Left {
		t.Errorf("after leaving: %+v", v)
	}
	// A place younger than the board is asked for, not guessed.
	if v := join(t, l, room, "young"); status(t, l, room, v.Token).Position != v.Position {
		t.Error("the newest place is told another number by the poll")
	}
}

func TestWithoutRedisTheLastNumberIsTold(t *testing.T) {
	t.Parallel()
	server := devstacktest.OwnRedis(t)
	l := newLine(t, dial(t, server.URL))
	room := openRoom(t, l, 60, 1)
	tokens := crowd(t, l, room, 10)
	step(t, l, room)
	b := refresh(t, l, room)
	server.Kill()
	old := *b
	old.at = time.Now().Add(-staleAfter - time.Second)
	l.own(room).board.Store(&old)
	if v := status(t, l, room, tokens[5]); v.Status != Waiting || !v.Room.Stale || v.Position < 3 {
		t.Errorf("%+v", v)
	}
	if v, err := l.Status(t.Context(), room, tokens[0], 1); err != nil || v.Position != 1 {
		t.Errorf("near the head with a shown number: %+v, %v", v, err)
	}
	if _, err := l.Status(t.Context(), room, tokens[0], 0); !errors.Is(err, ErrStale) {
		t.Errorf("near the head without one: %v", err)
	}
	if _, err := l.Claim(t.Context(), room, tokens[0]); err == nil {
		t.Error("admitted by a Redis that is gone")
	}
}
