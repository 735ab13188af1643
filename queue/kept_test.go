package queue

import (
	"testing"
	"time"
)

// A memory that forgot its last second has kept the rest. It knew of a visit of a minute
// ago, and whoever waits in it although there was one waits by right, as after a visit
// that was revoked: told of all visits, it must leave the place in line. Whose visit may
// be among what was forgotten is out, and so is whoever stands there on a token alone:
// that is how whoever was served would come in twice.
func TestARecoveryLeavesThePlacesThatWereKept(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	r := l.own(room)
	minuteAgo := time.Now().Add(-time.Minute)
	fans := map[string]View{}
	for i, name := range []string{"kept", "served", "forgotten"} {
		p, err := l.identify(room, Fan{ID: name})
		if err != nil {
			t.Fatal(err)
		}
		p.score, p.run = minuteAgo.UnixMicro()+int64(i), 1
		if name != "served" {
			if err := rdb.ZAdd(t.Context(), r.keys[kWait], z(p.score, string(p.member[:]))).Err(); err != nil {
				t.Fatal(err)
			}
		}
		fans[name] = View{PlaceID: p.id(), Token: l.sign(p)}
	}
	if err := rdb.HSet(t.Context(), r.keys[kState], "inc", minuteAgo.UnixMicro()).Err(); err != nil {
		t.Fatal(err)
	}
	report(t, l, room)
	refresh(t, l, room)
	turnBack(t, l, room)
	if v := refresh(t, l, room).view; !v.Recovering {
		t.Fatal("the loss was not noticed")
	}
	if v := status(t, l, room, fans["served"].Token); v.Status != Waiting {
		t.Fatalf("a token alone: %s", v.Status) // nobody knows better yet
	}
	told := []Served{
		{PlaceID: fans["kept"].PlaceID, Began: minuteAgo.Add(time.Second)},
		{PlaceID: fans["served"].PlaceID, Began: minuteAgo.Add(time.Second)},
		{PlaceID: fans["forgotten"].PlaceID, Began: time.Now()},
	}
	for range 2 {
		if err := l.PutServed(t.Context(), room, told); err != nil {
			t.Fatal(err)
		}
	}
	refresh(t, l, room)
	for name, want := range map[string]Status{"kept": Waiting, "served": Expired, "forgotten": Expired} {
		if v := status(t, l, room, fans[name].Token); v.Status != want {
			t.Errorf("%s is %s, want %s", name, v.Status, want)
		}
	}
}

// turnBack makes the room's memory one that forgot what the edge has seen of it last.
func turnBack(t *testing.T, l *Line, room string) {
	t.Helper()
	if err := l.rdb.HSet(t.Context(), l.own(room).keys[kEdges], "m:"+l.id, 0).Err(); err != nil {
		t.Fatal(err)
	}
}
