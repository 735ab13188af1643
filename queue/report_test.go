package queue

import (
	"fmt"
	"testing"
	"time"
)

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
