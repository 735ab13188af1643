package queue

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// priorityInvite is a link into a room's priority line.
func priorityInvite(room string, quota int) string {
	_, link := NewInvite(testSecret, room, Priority, quota, time.Now().Add(time.Hour))
	return link
}

func joinPriority(t testing.TB, l *Line, room, fan, link string) View {
	t.Helper()
	v, err := joinBy(t, l, room, fan, link)
	if err != nil || v.Status != Waiting || !v.Priority || v.Invited {
		t.Fatalf("%s by a priority invite: %+v, %v", fan, v, err)
	}
	return v
}

// cutLine is the line on paper: places in order, and a share reckoned from counts.
type cutLine struct {
	ahead, plain, prior []string
	both, given         int // since the share was set
}

// next are the next n, and how many of them were called while both lines waited, and
// of these from the priority line.
func (m *cutLine) next(n, share int) (called map[string]bool, both, given int) {
	called = map[string]bool{}
	take := func(line *[]string) { called[(*line)[0]] = true; *line = (*line)[1:] }
	for len(called) < n {
		switch {
		case len(m.ahead) > 0:
			take(&m.ahead)
		case len(m.prior) == 0 && len(m.plain) == 0:
			return called, both, given
		case len(m.prior) == 0:
			take(&m.plain)
		case len(m.plain) == 0:
			take(&m.prior)
		default:
			both++
			if (m.both+both)*share/100 > m.given+given {
				given++
				take(&m.prior)
			} else {
				take(&m.plain)
			}
		}
	}
	return called, both, given
}

// Whatever joins and whatever is free: never a slot unused while anybody waits, invited
// fans first, and of n calls with somebody in both lines exactly n × share / 100,
// rounded down, from the priority line.
func TestTheShareOfThePriorityLineIsExact(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		l := newLine(t, rdb)
		share := rapid.IntRange(0, 100).Draw(rt, "share")
		room := openRoom(t, l, 1_000_000, 0, func(s *Settings) { s.PriorityShare = share })
		r := l.own(room)
		_, bypass := NewInvite(testSecret, room, Bypass, MaxInviteQuota, time.Now().Add(time.Hour))
		links := map[string]string{"plain": "", "prior": priorityInvite(room, MaxInviteQuota), "ahead": bypass}
		m, names, version := &cutLine{}, map[string]string{}, int64(1)
		for range rapid.IntRange(1, 6).Draw(rt, "turns") {
			for _, kind := range []string{"plain", "prior", "ahead"} {
				most := map[string]int{"plain": 40, "prior": 40, "ahead": 2}[kind]
				for range rapid.IntRange(0, most).Draw(rt, kind) {
					fan := fmt.Sprint(room, "-", len(names))
					v, err := joinBy(t, l, room, fan, links[kind])
					if err != nil {
						rt.Fatal(err)
					}
					p, _ := l.verify(room, v.Token)
					names[string(p.member[:])] = fan
					line := map[string]*[]string{"plain": &m.plain, "prior": &m.prior, "ahead": &m.ahead}[kind]
					*line = append(*line, fan)
				}
			}
			// So many slots are free, and nobody was called before who did not come.
			free := rapid.IntRange(1, 60).Draw(rt, "free")
			version++
			if err := l.PutSettings(t.Context(), Settings{
				Room: room, Title: "Hall", Mode: "fifo", State: "open", RatePerMinute: 1_000_000, Cap: free, Run: 1, Version: version, PriorityShare: share,
			}); err != nil {
				rt.Fatal(err)
			}
			step(t, l, room)
			got := map[string]bool{}
			for _, member := range rdb.ZRange(t.Context(), r.keys[kCalled], 0, -1).Val() {
				got[names[member]] = true
			}
			want, both, given := m.next(free, share)
			m.both, m.given = m.both+both, m.given+given
			if fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("share %d, %d free: called %v, want %v", share, free, got, want)
			}
			if off := 100*m.given - m.both*share; off > 0 || off <= -100 {
				rt.Fatalf("the model gave %d of %d calls to the priority line, share %d", m.given, m.both, share)
			}
			rdb.Del(t.Context(), r.keys[kCalled], r.keys[kDue], r.keys[kTurns])
		}
		if n := rdb.ZCard(t.Context(), r.keys[kWait]).Val(); int(n) != len(m.plain)+len(m.ahead) {
			rt.Fatalf("%d wait in the line, want %d", n, len(m.plain)+len(m.ahead))
		}
		if n := rdb.ZCard(t.Context(), r.keys[kPriority]).Val(); int(n) != len(m.prior) {
			rt.Fatalf("%d wait in the priority line, want %d", n, len(m.prior))
		}
	})
}

// A share that is changed while both lines wait counts from then on, within one call.
func TestAChangedShareCountsAtOnce(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 1_000_000, 0)
	link := priorityInvite(room, MaxInviteQuota)
	for i := range 200 {
		join(t, l, room, fmt.Sprint("fan-", i))
		joinPriority(t, l, room, fmt.Sprint("vip-", i), link)
	}
	left := int64(200)
	for _, share := range []int{33, 0, 71, 100, 7} {
		refresh(t, l, room)
		calls := 0
		for calls < 40 {
			set(t, l, room, func(s *Settings) { s.Cap, s.PriorityShare = 3, share })
			step(t, l, room)
			calls += int(rdb.ZCard(t.Context(), l.own(room).keys[kCalled]).Val())
			rdb.Del(t.Context(), l.own(room).keys[kCalled], l.own(room).keys[kDue])
		}
		now := rdb.ZCard(t.Context(), l.own(room).keys[kPriority]).Val()
		if off := 100*int(left-now) - calls*share; off <= -100 || off >= 100 {
			t.Errorf("share %d: %d of %d calls", share, left-now, calls)
		}
		left = now
	}
}

func TestAPriorityPlaceStandsInItsOwnLine(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l, other := newLine(t, rdb), newLine(t, rdb)
	room := openRoom(t, l, 0, 10, func(s *Settings) { s.PriorityShare = 50 })
	link := priorityInvite(room, 3)
	_, bypass := NewInvite(testSecret, room, Bypass, 2, time.Now().Add(time.Hour))
	early, late := join(t, l, room, "early"), join(t, l, room, "late")
	first := joinPriority(t, l, room, "vip", link)
	moved := joinPriority(t, other, room, "early", link) // stands in line already
	if !first.Created || moved.Created || first.Position != 1 || moved.Position != 2 || moved.Token == early.Token {
		t.Fatalf("%+v, %+v", first, moved)
	}
	check := func(want map[Token]int) {
		t.Helper()
		for _, edge := range []*Line{l, other} {
			refresh(t, edge, room)
			for token, position := range want {
				for range 2 { // the second time from memory
					v := status(t, edge, room, token)
					if v.Status != Waiting || v.Position != position || v.Waiting < position || v.Priority == (token == late.Token) {
						t.Errorf("position %d, want %d: %+v", v.Position, position, v)
					}
				}
			}
			var count calls
			rdb.AddHook(&count)
			for token := range want {
				status(t, edge, room, token)
			}
			if n := count.n.Load(); n != 0 {
				t.Errorf("%d calls of Redis for polls above the watermarks", n)
			}
		}
	}
	check(map[Token]int{first.Token: 1, moved.Token: 2, late.Token: 1})
	if v := status(t, l, room, early.Token); v.Token != moved.Token || v.Position != 2 {
		t.Errorf("the token of before: %+v", v)
	}
	if b := refresh(t, l, room).view; b.Waiting != 3 || b.Priority != 2 || b.PriorityShare != 50 {
		t.Errorf("%+v", b)
	}
	// Again it takes nothing of the quota, whatever the invite; one ahead of the line does.
	for range 2 {
		if v, err := joinBy(t, l, room, "vip", link); err != nil || v.Created || v.Token != first.Token {
			t.Errorf("again: %+v, %v", v, err)
		}
	}
	ahead, err := joinBy(t, l, room, "vip", bypass)
	if err != nil || !ahead.Invited || ahead.Priority || ahead.Position != 1 {
		t.Errorf("ahead: %+v, %v", ahead, err)
	}
	if v, err := joinBy(t, l, room, "vip", link); err != nil || !v.Invited || v.Token != ahead.Token {
		t.Errorf("back into a worse line: %+v, %v", v, err)
	}
	check(map[Token]int{moved.Token: 1, late.Token: 2})
	if err := l.Leave(t.Context(), room, moved.Token); err != nil {
		t.Fatal(err)
	}
	if b := refresh(t, l, room); len(b.gone) == 0 {
		t.Error("the board does not tell that it left")
	}
	if v := status(t, l, room, moved.Token); v.Status != Left {
		t.Errorf("left: %+v", v)
	}
	if v := joinPriority(t, l, room, "early", link); !v.Created || v.Position != 1 {
		t.Errorf("back: %+v", v)
	}
	joinPriority(t, l, room, "third", link)
	set(t, l, room, func(s *Settings) { s.PriorityShare = 0 })
	if v, err := joinBy(t, l, room, "late", priorityInvite(room, 1)); err != nil || v.Priority || v.Token != late.Token {
		t.Errorf("moved into a line without a share: %+v, %v", v, err)
	}
	if _, err := joinBy(t, l, room, "fourth", link); err != ErrInviteUsedUp { //nolint:errorlint // exactly this one
		t.Errorf("a fourth of three: %v", err)
	}
}

// Whoever is called from the priority line stands by behind all who were called before
// and ahead of all of the line who are called later: however early those came.
func TestACalledPriorityFanWaitsForNoLaterCall(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 1_000_000, 0, func(s *Settings) { s.PriorityShare = 50 })
	link := priorityInvite(room, 10)
	var tokens []Token // in the order in which they are to be called: line, priority, line, …
	var plain []Token
	for i := range 3 {
		plain = append(plain, join(t, l, room, fmt.Sprint("fan-", i)).Token)
	}
	for i := range 3 {
		tokens = append(tokens, plain[i], joinPriority(t, l, room, fmt.Sprint("vip-", i), link).Token)
	}
	set(t, l, room, func(s *Settings) { s.Cap = 6 })
	step(t, l, room)
	set(t, l, room, func(s *Settings) { s.Cap = 0 }) // nobody comes in: all stand by, the last first
	for i := len(tokens) - 1; i >= 0; i-- {
		for range 2 {
			if _, err := l.Claim(t.Context(), room, tokens[i]); !isStandBy(err) {
				t.Fatalf("%d: %v", i, err)
			}
		}
	}
	for i := range tokens {
		set(t, l, room, func(s *Settings) { s.Cap = i + 1 })
		eventually(t, 10*time.Second, "the next is admitted", func() bool {
			step(t, l, room)
			return len(slotsOf(t, l, room)) == i+1
		})
		p, _ := l.verify(room, tokens[i])
		if s := slotsOf(t, l, room)[string(p.member[:])]; s.jti == "" || s.score != p.score {
			t.Fatalf("number %d is not inside at its score: %+v", i, s)
		}
	}
	if n := rdb.Exists(t.Context(), l.own(room).keys[kTurns]).Val(); n != 0 {
		t.Error("turns are kept of fans who are inside")
	}
}

// A missed call, a moved place, a revoked one, an old run: as in the line.
func TestAPriorityPlaceLivesAsAnyOther(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 1_000_000, 1, func(s *Settings) { s.PriorityShare = 100 })
	keys := l.own(room).keys
	link := priorityInvite(room, 10)
	a, b := joinPriority(t, l, room, "a", link), joinPriority(t, l, room, "b", link)
	plain := join(t, l, room, "plain")
	step(t, l, room)
	if v := status(t, l, room, a.Token); v.Status != Called || !v.Priority || v.Token != a.Token {
		t.Fatalf("%+v", v)
	}
	pa, _ := l.verify(room, a.Token)
	rdb.ZAdd(t.Context(), keys[kDue], z(1, string(pa.member[:]))) // the window is over
	step(t, l, room)
	if v := status(t, l, room, a.Token); v.Status != Expired {
		t.Fatalf("missed: %+v", v)
	}
	if v := status(t, l, room, b.Token); v.Status != Called {
		t.Fatalf("the next one: %+v", v)
	}
	if v := join(t, l, room, "a"); v.Token != a.Token || v.Position != 1 || !v.Priority {
		t.Errorf("forgiven: %+v", v)
	}

	code, err := l.NewMoveCode(t.Context(), room, a.Token, false)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := l.Move(t.Context(), room, Fan{ID: "phone"}, code.Code)
	if err != nil || moved.Status != Waiting || !moved.Priority || moved.Position != 1 {
		t.Fatalf("moved: %+v, %v", moved, err)
	}
	if v := status(t, l, room, a.Token); v.Status != Left || !v.Moved {
		t.Errorf("the old device: %+v", v)
	}
	// A called place takes its turn along.
	code, err = l.NewMoveCode(t.Context(), room, b.Token, false)
	if err != nil {
		t.Fatal(err)
	}
	called, err := l.Move(t.Context(), room, Fan{ID: "tablet"}, code.Code)
	if err != nil || called.Status != Called || !called.Priority {
		t.Fatalf("moved: %+v, %v", called, err)
	}
	if turns := rdb.HGetAll(t.Context(), keys[kTurns]).Val(); len(turns) != 1 {
		t.Errorf("turns %v", turns)
	}
	claim(t, l, room, called.Token)

	if err := l.PutRevoked(t.Context(), room, Revoked{Version: 2, Places: map[string]bool{moved.PlaceID: true}}); err != nil {
		t.Fatal(err)
	}
	if v := refresh(t, l, room).view; v.Priority != 0 || v.Waiting != 1 {
		t.Errorf("a revoked place waits on: %+v", v)
	}
	joinPriority(t, l, room, "c", link)
	set(t, l, room, func(s *Settings) { s.Run++ })
	if v := refresh(t, l, room).view; v.Waiting != 0 || v.Priority != 0 {
		t.Errorf("a reset left %+v", v)
	}
	if _, err := l.Status(t.Context(), room, plain.Token, 0); err == nil {
		t.Error("a place of the old run lives on")
	}
}
