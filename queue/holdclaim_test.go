package queue

import (
	"errors"
	"testing"
)

// A fan was called, and the memory that remembers the call has forgotten something else
// since: the claim that finds it out admits nobody, nor does any other edge. Who is
// inside gets the pass all the while.
func TestAClaimAdmitsNobodyWhileTheLineIsPutBack(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 60_000, 10)
	inside, called := join(t, l, room, "inside"), join(t, l, room, "called")
	step(t, l, room)
	first := claim(t, l, room, inside.Token)
	refresh(t, l, room) // has seen this memory's beat, which a failover turns back
	if v := status(t, l, room, called.Token); v.Status != Called {
		t.Fatalf("%+v", v)
	}
	state := l.own(room).keys[kState]
	if err := rdb.HSet(t.Context(), state, "beat", 1).Err(); err != nil {
		t.Fatal(err)
	}
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
	if v, err := rdb.ZScore(t.Context(), l.own(room).keys[kDue], memberOf(t, l, room, called.Token)).Result(); err != nil || v == 0 {
		t.Errorf("the call was used up: %v, %v", v, err)
	}
}
