package queue

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func joinBy(t testing.TB, l *Line, room, fan, invite string) (View, error) {
	t.Helper()
	return l.Join(t.Context(), room, Fan{ID: fan, Invite: invite})
}

func TestAnInvitedFanStandsBeforeTheLine(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 10)
	early, late := join(t, l, room, "early"), join(t, l, room, "late")
	_, link := NewInvite(testSecret, room, Bypass, 3, time.Now().Add(time.Hour))
	first, err := joinBy(t, l, room, "vip-1", link)
	if err != nil || !first.Created || !first.Invited || first.Position != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := joinBy(t, l, room, "vip-2", link)
	if err != nil || second.Position != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	// Who is in line already is moved, and the place of before is told nowhere.
	moved, err := joinBy(t, l, room, "late", link)
	if err != nil || moved.Created || !moved.Invited || moved.Position != 3 || moved.Token == late.Token {
		t.Fatalf("%+v, %v", moved, err)
	}
	refresh(t, l, room)
	for name, want := range map[Token]int{first.Token: 1, second.Token: 2, moved.Token: 3, late.Token: 3, early.Token: 4} {
		if v := status(t, l, room, name); v.Status != Waiting || v.Position != want || v.Invited != (want < 4) {
			t.Errorf("position %d, want %d: %+v", v.Position, want, v)
		}
	}
	// The same fan again, and after leaving, takes no second place of the quota.
	if v, err := joinBy(t, l, room, "vip-1", link); err != nil || v.Created || v.Token != first.Token {
		t.Errorf("again: %+v, %v", v, err)
	}
	if err := l.Leave(t.Context(), room, first.Token); err != nil {
		t.Fatal(err)
	}
	if v := status(t, l, room, first.Token); v.Status != Left {
		t.Errorf("left: %+v", v)
	}
	if v, err := joinBy(t, l, room, "vip-1", link); err != nil || !v.Created || v.Position != 3 {
		t.Errorf("back: %+v, %v", v, err)
	}
	if _, err := joinBy(t, l, room, "vip-4", link); !errors.Is(err, ErrInviteUsedUp) {
		t.Errorf("a fourth of three: %v", err)
	}
	if _, err := joinBy(t, l, room, "early", link); !errors.Is(err, ErrInviteUsedUp) {
		t.Errorf("used up, with a place: %v", err)
	}
	if v := status(t, l, room, early.Token); v.Status != Waiting || v.Position != 4 {
		t.Errorf("the place is kept: %+v", v)
	}
	// They are called first, within the same cap, and a missed call is forgiven as ever.
	set(t, l, room, func(s *Settings) { s.RatePerMinute, s.Cap = 60_000, 2 })
	eventually(t, 10*time.Second, "two are inside, in the order of the line", func() bool {
		step(t, l, room)
		_, e1 := l.Claim(t.Context(), room, second.Token)
		_, e2 := l.Claim(t.Context(), room, moved.Token)
		return e1 == nil && e2 == nil
	})
	if n := len(slotsOf(t, l, room)); n != 2 {
		t.Errorf("%d inside with a cap of 2", n)
	}
}

func TestInvitesThatAreNotGood(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room, other := openRoom(t, l, 0, 10), openRoom(t, l, 0, 10)
	_, good := NewInvite(testSecret, room, Bypass, 3, time.Now().Add(time.Hour))
	_, foreign := NewInvite(testSecret, other, Bypass, 3, time.Now().Add(time.Hour))
	_, over := NewInvite(testSecret, room, Bypass, 3, time.Now().Add(-time.Second))
	_, forged := NewInvite([]byte("another secret of thirty-two byte"), room, Bypass, 3, time.Now().Add(time.Hour))
	place := join(t, l, room, "fan")
	edited := []byte(good)
	edited[8] ^= 1
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"foreign": {foreign, ErrInviteInvalid}, "over": {over, ErrInviteExpired}, "forged": {forged, ErrInviteInvalid},
		"edited": {string(edited), ErrInviteInvalid}, "cut": {good[:20], ErrInviteInvalid},
		"a place's": {string(place.Token), ErrInviteInvalid}, "long": {good + good + good, ErrInviteInvalid}, "dots": {"....", ErrInviteInvalid},
	} {
		if _, err := joinBy(t, l, room, "fan-"+name, c.token); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v := refresh(t, l, room).view; v.Waiting != 1 {
		t.Errorf("%d wait", v.Waiting)
	}
	if _, err := l.Status(t.Context(), room, Token(good), 0); !errors.Is(err, ErrBadToken) {
		t.Errorf("an invite as a place: %v", err)
	}
}

func TestAnInvitesQuotaHoldsInARace(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	lines := []*Line{newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], 0, 10)
	_, link := NewInvite(testSecret, room, Bypass, 20, time.Now().Add(time.Hour))
	var in, out atomic.Int64
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			<-gate
			_, err := joinBy(t, lines[i%2], room, fmt.Sprint("fan-", i/2), link) // each of 100 twice
			switch {
			case err == nil:
				in.Add(1)
			case errors.Is(err, ErrInviteUsedUp):
				out.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if v := refresh(t, lines[0], room).view; v.Waiting != 20 || in.Load() != 40 || out.Load() != 160 {
		t.Errorf("%d have a place of 20, %d joins went through, %d did not", v.Waiting, in.Load(), out.Load())
	}
}

// Invited and other fans at once, two edges calling: never more inside than the cap
// allows, and nobody who came by himself is called while an invited fan waits.
func TestInvitedFansAreInsideTheSameCap(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	lines := []*Line{newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], 0, 3)
	_, link := NewInvite(testSecret, room, Bypass, 12, time.Now().Add(time.Hour))
	var tokens []Token
	for i := range 12 {
		tokens = append(tokens, join(t, lines[0], room, fmt.Sprint("fan-", i)).Token)
	}
	for i := range 12 {
		v, err := joinBy(t, lines[1], room, fmt.Sprint("vip-", i), link)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, v.Token)
	}
	set(t, lines[0], room, func(s *Settings) { s.RatePerMinute = 60_000 })
	run(t, room, lines...)
	keys := lines[0].own(room).keys
	var order []int
	admitted := map[int]bool{}
	eventually(t, 60*time.Second, "all are admitted", func() bool {
		for i, token := range tokens {
			if admitted[i] {
				continue
			}
			a, err := lines[i%2].Claim(t.Context(), room, token)
			if n := rdb.ZCard(t.Context(), keys[kInside]).Val(); n > 3 {
				t.Fatalf("%d inside with a cap of 3", n)
			}
			if err != nil {
				continue
			}
			admitted[i], order = true, append(order, i)
			// The visit ends: its slot is the next one's.
			if err := lines[0].PutReport(t.Context(), room, Report{At: time.Unix(1, 0), Ended: []SlotRef{{PlaceID: a.PlaceID, JTI: a.JTI}}}); err != nil {
				t.Fatal(err)
			}
		}
		return len(order) == len(tokens)
	})
	// Several are called at once, so a later one may claim first: within the cap of 3.
	for at, i := range order {
		if i < 12 && at < 12-3 {
			t.Errorf("a fan without an invite was number %d to come in: %v", at+1, order)
		}
	}
}
