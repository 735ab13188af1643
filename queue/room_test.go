package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

func TestNobodyLinesUpBeforeTheDoors(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	opens := time.Now().Add(time.Hour).Truncate(time.Second)
	room := openRoom(t, l, 60, 1, func(s *Settings) { s.State, s.OpensAt = "scheduled", opens })
	var early *NotOpenYetError
	for _, mode := range []string{"fifo", "passthrough"} {
		set(t, l, room, func(s *Settings) { s.Mode, s.OpensAt = mode, opens })
		if _, err := l.Join(t.Context(), room, Fan{ID: "script"}); !errors.As(err, &early) || !early.OpensAt.Equal(opens) {
			t.Errorf("%s: joined before the doors: %v", mode, err)
		}
	}
	set(t, l, room, func(s *Settings) { s.Mode, s.State = "fifo", "gathering" })
	fan := join(t, l, room, "fan")
	set(t, l, room, func(s *Settings) { s.State = "scheduled" }) // taken back: places are kept
	if v := join(t, l, room, "fan"); v.Token != fan.Token || v.Position != 1 {
		t.Errorf("a place of before: %+v", v)
	}
	if _, err := l.Join(t.Context(), room, Fan{ID: "script"}); !errors.As(err, &early) || !early.OpensAt.IsZero() {
		t.Errorf("without a schedule: %v", err)
	}
}

// Names that strangers invent cost one look at the list each 250 ms, and no board.
func TestInventedNamesOfRoomsCostNothing(t *testing.T) {
	t.Parallel()
	own := devstacktest.OwnRedis(t).URL
	maker := newLine(t, dial(t, own))
	for range 5 {
		openRoom(t, maker, 60, 1)
	}
	room := openRoom(t, maker, 60, 1)
	other := dial(t, own)
	var sent calls
	other.AddHook(&sent)
	l := newLine(t, other)
	if err := other.Ping(t.Context()).Err(); err != nil { // connecting is counted, too
		t.Fatal(err)
	}
	sent.n.Store(0)
	start, asked := time.Now(), 0
	for ; asked < 200; asked++ {
		if _, err := l.Room(fmt.Sprint("invented-", asked)); !errors.Is(err, ErrUnknownRoom) {
			t.Fatal(err)
		}
	}
	if n, most := sent.n.Load(), 1+int64(time.Since(start)/lookEvery); n > most {
		t.Errorf("%d names in %s: %d calls of Redis, want at most %d", asked, time.Since(start), n, most)
	}
	if len(l.allRooms()) != 0 {
		t.Errorf("%d rooms are kept", len(l.allRooms()))
	}
	sent.n.Store(0)
	if v, err := l.Room(room); err != nil || v.Title != "Hall" {
		t.Errorf("%+v, %v", v, err)
	}
	if n := sent.n.Load(); n > 3 { // the list, and one board (sent twice when its script is new)
		t.Errorf("finding one of six rooms took %d calls", n)
	}
}

// hangs is a Redis that lets every call wait.
type hangs struct{ calls }

func (h *hangs) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error { <-ctx.Done(); return ctx.Err() }
}

func TestNobodyWaitsLongerForANewRoomThanTheirDeadline(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	rdb.AddHook(&hangs{})
	l := newLine(t, rdb)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := l.Join(ctx, fmt.Sprint("room-", i), Fan{ID: "x"})
			if took := time.Since(start); !errors.Is(err, ErrStale) || took > storeTimeout/2 {
				t.Errorf("after %s: %v", took, err)
			}
		})
	}
	wg.Wait()
}

// The list of rooms is one key of the cluster, and its node may be down while a room's is
// not. Rooms that an edge knows are kept, and a pause reaches them.
func TestRoomsAreKeptWithoutTheirList(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	refresh(t, l, room)
	if err := rdb.Set(t.Context(), roomsKey, "no list", 0).Err(); err != nil {
		t.Fatal(err)
	}
	before := l.own(room).board.Load()
	if err := l.refreshAll(t.Context()); err == nil {
		t.Error("nobody hears that the list cannot be read")
	}
	if l.own(room).board.Load() == before {
		t.Error("a room that is known was not read")
	}
	s := Settings{Room: room, Title: "Hall", Mode: "fifo", State: "paused", Cap: 1, Run: 1, Version: 2, BookingURL: "http://booking.test"}
	if err := l.PutSettings(t.Context(), s); err == nil {
		t.Error("nobody hears that the room cannot be listed")
	}
	if v := l.own(room).board.Load().view; v.State != "paused" {
		t.Errorf("the pause has not arrived: %+v", v)
	}
}
