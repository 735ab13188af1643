package queue

import (
	"errors"
	"testing"
	"time"

	"usher/internal/devstack/devstacktest"
)

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

// An edge that starts during an outage must not tell fans that their room does
// not exist.
func TestWithoutRedisNoRoomIsCalledUnknown(t *testing.T) {
	t.Parallel()
	server := devstacktest.OwnRedis(t)
	l := newLine(t, dial(t, server.URL))
	server.Kill()
	for range 3 {
		if _, err := l.Room("cinema"); !errors.Is(err, ErrStale) {
			t.Errorf("got %v", err)
		}
	}
}
