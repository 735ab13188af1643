package queue

import (
	"testing"
	"time"
)

// A replica took over whose clock is a minute behind. What it remembers lies in its
// future; a report it has not got is not fresh, and the last admission stops nobody for
// that minute.
func TestAClockThatFallsBackNeitherAdmitsNorStops(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10)
	state := l.own(room).keys[kState]
	fan, other := join(t, l, room, "fan"), join(t, l, room, "other")
	step(t, l, room)
	future := time.Now().Add(time.Minute).UnixMicro()
	if err := l.rdb.HSet(t.Context(), state, "report", future, "grant", future).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Claim(t.Context(), room, fan.Token); !isStandBy(err) {
		t.Errorf("claimed by a report that is still to come: %v", err)
	}
	step(t, l, room)
	if b := refresh(t, l, room); b.view.Inside != 0 || l.roomView(b).InventoryOK {
		t.Errorf("%d inside by a report to come, inventory shown as known: %v", b.view.Inside, l.roomView(b).InventoryOK)
	}
	report(t, l, room)
	eventually(t, 10*time.Second, "the line goes on", func() bool {
		step(t, l, room)
		_, err := l.Claim(t.Context(), room, fan.Token)
		_, err2 := l.Claim(t.Context(), room, other.Token)
		return err == nil && err2 == nil
	})
}

// A room is rehearsed, emptied and begun anew without a new run. A browser that has kept
// its place of the rehearsal has no proof of a loss: the sale must not stop for it. Its
// fan has no place, and joins at the tail.
func TestAPlaceOfBeforeTheMemoryIsNoProofOfALoss(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	r := l.own(room)
	old := join(t, l, room, "old")
	began := time.Now().Add(time.Second).UnixMicro()
	rdb.Del(t.Context(), r.keys[kWait])
	if err := rdb.HSet(t.Context(), r.keys[kState], "inc", began, "last", began).Err(); err != nil {
		t.Fatal(err)
	}
	fresh := newLine(t, rdb)
	refresh(t, fresh, room)
	if v := status(t, fresh, room, old.Token); v.Status != Expired || v.Room.Recovering {
		t.Errorf("a place of the rehearsal: %+v", v)
	}
	if refresh(t, fresh, room).view.Recovering {
		t.Error("the sale stops for it")
	}
	if v := join(t, fresh, room, "old"); v.Status != Waiting || v.Position != 1 {
		t.Errorf("%+v", v)
	}
}
