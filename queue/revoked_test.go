package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func only(s ...string) map[string]bool {
	m := map[string]bool{}
	for _, x := range s {
		m[x] = true
	}
	return m
}

func revoke(t testing.TB, l *Line, room string, v Revoked) {
	t.Helper()
	if err := l.PutRevoked(t.Context(), room, v); err != nil {
		t.Fatal(err)
	}
}

func TestQ12_RevokedPlacesLeaveTheLine(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	bridge, edge := newLine(t, rdb), newLine(t, rdb)
	room := openRoom(t, bridge, 0, 10)
	ana, ben, zoe := join(t, edge, room, "ana"), join(t, edge, room, "ben"), join(t, edge, room, "zoe")
	b, err := edge.verify(room, ben.Token)
	if err != nil {
		t.Fatal(err)
	}
	revoke(t, bridge, room, Revoked{Version: 7, Places: only(ana.PlaceID), Customers: only(b.customerID())})
	if v := refresh(t, edge, room).view; v.Waiting != 2 { // ben's place is not known until he asks
		t.Errorf("%d wait, want 2", v.Waiting)
	}
	for name, token := range map[string]Token{"ana": ana.Token, "ben": ben.Token} {
		if v := status(t, edge, room, token); v.Status != Expired || !v.Revoked || v.Token != token {
			t.Errorf("%s: %+v", name, v)
		}
		if _, err := edge.Join(t.Context(), room, Fan{ID: name}); !errors.Is(err, ErrRevoked) {
			t.Errorf("%s joins: %v", name, err)
		}
		if _, err := edge.Claim(t.Context(), room, token); !errors.Is(err, ErrRevoked) {
			t.Errorf("%s claims: %v", name, err)
		}
	}
	if v := refresh(t, edge, room).view; v.Waiting != 1 {
		t.Errorf("%d wait, want 1", v.Waiting)
	}
	if v := status(t, edge, room, zoe.Token); v.Status != Waiting || v.Position != 1 || v.Revoked {
		t.Errorf("zoe: %+v", v)
	}
	// An older list changes nothing, a newer one may take names back.
	revoke(t, newLine(t, rdb), room, Revoked{Version: 6})
	refresh(t, edge, room)
	if _, err := edge.Join(t.Context(), room, Fan{ID: "ana"}); !errors.Is(err, ErrRevoked) {
		t.Errorf("after an older list: %v", err)
	}
	revoke(t, bridge, room, Revoked{Version: 8, Customers: only(b.customerID())})
	refresh(t, edge, room)
	if v := join(t, edge, room, "ana"); !v.Created || v.Position != 2 {
		t.Errorf("lifted: %+v", v)
	}
	if _, err := edge.Join(t.Context(), room, Fan{ID: "ben"}); !errors.Is(err, ErrRevoked) {
		t.Errorf("not lifted: %v", err)
	}
	// A Redis that lost it all shows no list: the last one stays in force, and comes back.
	if err := rdb.Del(t.Context(), keysOf(room)[kRevoked], keysOf(room)[kState]).Err(); err != nil {
		t.Fatal(err)
	}
	refresh(t, edge, room)
	if _, err := edge.Join(t.Context(), room, Fan{ID: "ben"}); !errors.Is(err, ErrRevoked) {
		t.Errorf("after a loss: %v", err)
	}
	revoke(t, bridge, room, Revoked{Version: 8, Customers: only(b.customerID())})
	fresh := newLine(t, rdb)
	refresh(t, fresh, room)
	if _, err := fresh.Join(t.Context(), room, Fan{ID: "ben"}); !errors.Is(err, ErrRevoked) {
		t.Errorf("shipped again: %v", err)
	}
}

// Many more than one run of the script takes, and two bridges at once.
func TestQ12_LongListsOfTwoBridgesDoNotMix(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	a, b := newLine(t, rdb), newLine(t, rdb)
	room := openRoom(t, a, 0, 10)
	lists := [2]Revoked{{Version: 1, Customers: map[string]bool{}}, {Version: 2, Passes: map[string]bool{}}}
	for i := range 3 * revokedChunk {
		lists[0].Customers[fmt.Sprint("old-", i)] = true
		lists[1].Passes[fmt.Sprint("new-", i)] = true
	}
	gate, errs := make(chan struct{}), make(chan error, 2)
	for i, l := range []*Line{a, b} {
		go func() {
			<-gate
			errs <- l.PutRevoked(t.Context(), room, lists[i])
		}()
	}
	close(gate)
	for range 2 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	edge := newLine(t, rdb)
	refresh(t, edge, room)
	set := edge.own(room).revoked.Load()
	if set.version != 2 || len(set.fields) != 3*revokedChunk || !set.fields["j:new-7"] {
		t.Errorf("version %d with %d fields", set.version, len(set.fields))
	}
}

// Whoever was inside when everybody was revoked has the place of before, once; those
// in line keep theirs.
func TestQ12_EverybodyBeforeGivesThePlacesBack(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 2)
	visiting, unused, waiting := join(t, l, room, "ana"), join(t, l, room, "ben"), join(t, l, room, "zoe")
	step(t, l, room)
	admit := func(token Token) (a Admission) {
		t.Helper()
		eventually(t, 5*time.Second, "admission", func() bool {
			step(t, l, room)
			var err error
			a, err = l.Claim(t.Context(), room, token)
			return err == nil
		})
		return a
	}
	a, b := admit(visiting.Token), admit(unused.Token)
	visit := SlotRef{PlaceID: a.PlaceID, JTI: a.JTI}
	revoke(t, l, room, Revoked{Version: 3, Before: b.GrantedAt.Add(time.Second)})
	put := func(r Report) {
		t.Helper()
		if r.At = time.Unix(1, 0); l.PutReport(t.Context(), room, r) != nil {
			t.Fatal("report")
		}
	}
	put(Report{Living: []SlotRef{visit}}) // booking has not ended it yet
	if n := len(slotsOf(t, l, room)); n != 1 {
		t.Fatalf("%d slots: the pass that can open no session must be free, the living visit not", n)
	}
	put(Report{Ended: []SlotRef{visit}, Revoked: []SlotRef{visit}})
	if n := len(slotsOf(t, l, room)); n != 0 {
		t.Fatalf("%d slots", n)
	}
	refresh(t, l, room)
	for i, fan := range []string{"ana", "ben"} {
		old := []View{visiting, unused}[i]
		if v := status(t, l, room, old.Token); v.Status != Expired || v.Revoked {
			t.Errorf("%s before joining: %+v", fan, v)
		}
		if v := join(t, l, room, fan); v.Created || v.Token != old.Token {
			t.Errorf("%s has another place than before: %+v", fan, v)
		}
	}
	if v := status(t, l, room, waiting.Token); v.Status != Waiting && v.Status != Called {
		t.Errorf("zoe: %+v", v)
	}
}
