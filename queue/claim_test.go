package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestAMissedCallIsForgivenOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""), func(o *Options) { o.ClaimWindow = time.Millisecond })
	room := openRoom(t, l, 60, 1)
	fan := join(t, l, room, "fan")
	other := join(t, l, room, "other")
	miss := func() {
		t.Helper()
		eventually(t, 5*time.Second, "the call is missed", func() bool {
			step(t, l, room)
			return status(t, l, room, fan.Token).Status == Expired
		})
	}
	miss()
	if _, err := l.Claim(t.Context(), room, fan.Token); !errors.Is(err, ErrExpired) {
		t.Errorf("claim after a missed call: %v", err)
	}
	back := join(t, l, room, "fan")
	if back.Token != fan.Token || back.Position != 1 || back.Created {
		t.Errorf("after one missed call: %+v", back)
	}
	miss()
	tail := join(t, l, room, "fan")
	if tail.Token == fan.Token || !tail.Created {
		t.Errorf("after two missed calls the old place came back: %+v", tail)
	}
	p, _ := l.verify(room, tail.Token)
	q, _ := l.verify(room, other.Token)
	if p.score <= q.score {
		t.Error("not behind everybody")
	}
	// The old token is the same fan's: it shows the place as it is now, under a new token.
	if v := status(t, l, room, fan.Token); v.Status != Expired && v.Token != tail.Token {
		t.Errorf("the token of before shows %+v", v)
	}
}

func TestWhoLeavesStartsAtTheTail(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 1)
	fan := join(t, l, room, "fan")
	join(t, l, room, "other")
	for range 2 {
		if err := l.Leave(t.Context(), room, fan.Token); err != nil {
			t.Fatal(err)
		}
	}
	refresh(t, l, room)
	if v := status(t, l, room, fan.Token); v.Status != Left || v.Position != 0 {
		t.Errorf("after leaving: %+v", v)
	}
	back := join(t, l, room, "fan")
	if back.Position != 2 || !back.Created {
		t.Errorf("joined after leaving: %+v", back)
	}
	refresh(t, l, room)
	if v := status(t, l, room, fan.Token); v.Position != 2 || v.Token != back.Token {
		t.Errorf("the token of before shows %+v", v)
	}
	if v := status(t, l, room, back.Token); v.Position != 2 {
		t.Errorf("the new token shows %+v", v)
	}
}

func TestQ13_AsLongAsTheReplyIsLostTheSamePassComes(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 5)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	first := claim(t, l, room, fan.Token)
	if !first.First {
		t.Error("the first claim does not say so")
	}
	for range 5 { // the client library, the browser and the fan try again
		again := claim(t, l, room, fan.Token)
		if again.First {
			t.Error("counted twice")
		}
		again.First = true
		if again != first {
			t.Fatalf("got %+v\nfirst %+v", again, first)
		}
	}
	if b := refresh(t, l, room); b.view.Admitted != 1 || b.view.Inside != 1 {
		t.Errorf("admitted %d, inside %d, want 1 and 1", b.view.Admitted, b.view.Inside)
	}
	if v := status(t, l, room, fan.Token); v.Status != Admitted {
		t.Errorf("status %s", v.Status)
	}
	if v := join(t, l, room, "fan"); v.Status != Admitted || v.Token != fan.Token {
		t.Errorf("joined again while inside: %+v", v)
	}
}

func TestAnUnusedPassIsRenewedUnderTheSameIdWithItsLease(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 5)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	first := claim(t, l, room, fan.Token)
	r := l.own(room)
	m := memberOf(t, l, room, fan.Token)
	last := first
	for n := range maxRenewals {
		expire(t, l, room, m)
		if err := l.rdb.ZAdd(t.Context(), r.keys[kInside], z(time.Now().Add(10*time.Second).UnixMicro(), m)).Err(); err != nil {
			t.Fatal(err) // and its lease nearly over
		}
		next := claim(t, l, room, fan.Token)
		if next.JTI != first.JTI || next.GrantedAt != first.GrantedAt || !next.ExpiresAt.After(last.ExpiresAt.Add(-time.Second)) || next.First {
			t.Fatalf("renewal %d: %+v", n+1, next)
		}
		lease, err := l.rdb.ZScore(t.Context(), r.keys[kInside], m).Result()
		if err != nil || time.UnixMicro(int64(lease)).Before(next.ExpiresAt.Add(l.opts.SlotLease-l.opts.PassLife-2*time.Second)) {
			t.Fatalf("a session opened with the renewed pass may outlive the lease (%v)", err)
		}
		last = next
	}
	expire(t, l, room, m)
	if _, err := l.Claim(t.Context(), room, fan.Token); !errors.Is(err, ErrExpired) {
		t.Errorf("renewed for ever: %v", err)
	}
}

func memberOf(t *testing.T, l *Line, room string, token Token) string {
	t.Helper()
	p, err := l.verify(room, token)
	if err != nil {
		t.Fatal(err)
	}
	return string(p.member[:])
}

// expire turns the clock of one pass back.
func expire(t *testing.T, l *Line, room, m string) {
	t.Helper()
	s := slotsOf(t, l, room)[m]
	text := fmt.Sprintf("%s|%d|%d|%d|%d", s.jti, s.granted, s.granted, s.score, s.renewals)
	if s.used {
		text += "|1"
	}
	if err := l.rdb.HSet(t.Context(), l.own(room).keys[kSlots], m, text).Err(); err != nil {
		t.Fatal(err)
	}
}

// A stand-by who looked away, or whose pass was lost on the way: admitted, but no
// session came of it. "This call cannot be missed any more" was promised.
func TestAnUnusedPassGivesThePlaceBackOnce(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 1)
	fan, other := join(t, l, room, "fan"), join(t, l, room, "other")
	unused := func() {
		t.Helper()
		eventually(t, 5*time.Second, "admission", func() bool {
			step(t, l, room)
			_, err := l.Claim(t.Context(), room, fan.Token)
			return err == nil
		})
		s := slotsOf(t, l, room)[memberOf(t, l, room, fan.Token)]
		if err := l.PutReport(t.Context(), room, Report{At: instant(s.expires).Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		if v := status(t, l, room, fan.Token); v.Status != Expired {
			t.Fatalf("after an unused pass: %+v", v)
		}
	}
	unused()
	set(t, l, room, func(s *Settings) { s.RatePerMinute = 0 }) // nobody is called while we look
	back := join(t, l, room, "fan")
	if back.Token != fan.Token || back.Created {
		t.Errorf("after one unused pass: %+v", back)
	}
	set(t, l, room, func(s *Settings) { s.RatePerMinute = 60_000 })
	unused()
	tail := join(t, l, room, "fan")
	if tail.Token == fan.Token || !tail.Created {
		t.Errorf("after two unused passes the old place came back: %+v", tail)
	}
	p, _ := l.verify(room, tail.Token)
	q, _ := l.verify(room, other.Token)
	if p.score <= q.score {
		t.Error("not behind everybody")
	}
}

func TestAnUnusedPassOfAnEarlierRunGivesNothingBack(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 1)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	claim(t, l, room, fan.Token)
	set(t, l, room, func(s *Settings) { s.Run = 2 })
	first := join(t, l, room, "first of the new run")
	s := slotsOf(t, l, room)[memberOf(t, l, room, fan.Token)]
	if err := l.PutReport(t.Context(), room, Report{At: instant(s.expires).Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	p, _ := l.verify(room, join(t, l, room, "fan").Token)
	q, _ := l.verify(room, first.Token)
	if p.score <= q.score {
		t.Error("a place of before the reset came back ahead of the new line")
	}
}

// A fan who left, came back and then missed the call has not left.
func TestWhoLeftOnceIsNotToldSoForEver(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""), func(o *Options) { o.ClaimWindow = time.Millisecond })
	room := openRoom(t, l, 60, 1)
	old := join(t, l, room, "fan")
	if err := l.Leave(t.Context(), room, old.Token); err != nil {
		t.Fatal(err)
	}
	fan := join(t, l, room, "fan")
	eventually(t, 5*time.Second, "the call is missed", func() bool {
		step(t, l, room)
		v := status(t, l, room, fan.Token)
		if v.Status == Left {
			t.Fatal("told to have left the place that was never given up")
		}
		return v.Status == Expired
	})
	if v := status(t, l, room, old.Token); v.Status != Left {
		t.Errorf("the place that was given up: %s", v.Status)
	}
}

// Booking was away until nothing tells of the visit any more. It was one all the same.
func TestAVisitThatWasToldOfIsNeverAnUnusedPass(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 1)
	fan := join(t, l, room, "fan")
	step(t, l, room)
	a := claim(t, l, room, fan.Token)
	visit := SlotRef{PlaceID: a.PlaceID, JTI: a.JTI, Began: a.GrantedAt}
	for range 2 { // twice, as the mark must be left alone
		if err := l.PutReport(t.Context(), room, Report{At: a.ExpiresAt, Living: []SlotRef{visit}}); err != nil {
			t.Fatal(err)
		}
	}
	expire(t, l, room, memberOf(t, l, room, fan.Token))
	if renewed := claim(t, l, room, fan.Token); renewed.JTI != a.JTI { // the mark outlives a renewed pass
		t.Fatalf("renewed as %+v", renewed)
	}
	s := slotsOf(t, l, room)[memberOf(t, l, room, fan.Token)]
	if err := l.PutReport(t.Context(), room, Report{At: instant(s.expires).Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if n := len(slotsOf(t, l, room)); n != 0 {
		t.Fatalf("%d slots are left", n)
	}
	if v := join(t, l, room, "fan"); v.Token == fan.Token || !v.Created {
		t.Errorf("after a visit the place came back: %+v", v)
	}
}
