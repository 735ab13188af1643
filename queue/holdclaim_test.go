package queue

import (
	"errors"
	"testing"
	"time"
)

// Fans were called, and the memory that remembers the calls has forgotten something else
// since: the claim that finds it out admits nobody, nor does any other edge. Who is
// inside gets the pass all the while. A call that nobody could have answered with success
// has not been missed, and whoever answered it stands by.
func TestAClaimAdmitsNobodyWhileTheLineIsPutBack(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 60_000, 10)
	inside, called, away := join(t, l, room, "inside"), join(t, l, room, "called"), join(t, l, room, "away")
	step(t, l, room)
	first := claim(t, l, room, inside.Token)
	refresh(t, l, room) // has seen a mark of this memory, which a failover turns back
	if v := status(t, l, room, called.Token); v.Status != Called {
		t.Fatalf("%+v", v)
	}
	state := l.own(room).keys[kState]
	turnBack(t, l, room)
	fresh := newLine(t, rdb) // an edge that has seen nothing, and finds the recovery in Redis
	for _, edge := range []*Line{l, fresh, l} {
		if a, err := edge.Claim(t.Context(), room, called.Token); !errors.Is(err, ErrRecovering) {
			t.Errorf("claimed in a recovery: %+v, %v", a, err)
		}
	}
	if a, err := fresh.Claim(t.Context(), room, inside.Token); err != nil || a.JTI != first.JTI {
		t.Errorf("who is inside: %+v, %v", a, err)
	}
	if n := len(slotsOf(t, l, room)); n != 1 {
		t.Errorf("%d inside", n)
	}
	r := l.own(room)
	if err := rdb.ZScore(t.Context(), r.keys[kStandby], memberOf(t, l, room, called.Token)).Err(); err != nil {
		t.Errorf("whoever claimed does not stand by: %v", err)
	}

	// The hold has lasted longer than a call stands.
	past := time.Now().Add(-time.Second).UnixMicro()
	err := errors.Join(
		rdb.HSet(t.Context(), state, "hold", past).Err(),
		rdb.ZAdd(t.Context(), r.keys[kDue], z(past, memberOf(t, l, room, away.Token))).Err())
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := l.Resume(t.Context(), room, refresh(t, l, room).inc, time.Now()); err != nil || !ended {
		t.Fatalf("the recovery has not ended: %v, %v", ended, err)
	}
	step(t, l, room)
	claim(t, l, room, called.Token)
	refresh(t, l, room)
	if v := status(t, l, room, away.Token); v.Status != Called || time.Until(v.CalledUntil) < l.opts.ClaimWindow-10*time.Second {
		t.Errorf("who was called before the loss is %s until %s", v.Status, v.CalledUntil)
	}
}
