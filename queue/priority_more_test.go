package queue

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"usher/internal/devstack/devstacktest"
)

// Fans of all kinds join at once, some twice and some by another invite, two edges call,
// and all are admitted once: never more inside than the cap allows.
func TestPriorityFansAreInsideTheSameCap(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	lines := []*Line{newLine(t, rdb), newLine(t, rdb)}
	room := openRoom(t, lines[0], 0, 3, func(s *Settings) { s.PriorityShare = 30 })
	link := priorityInvite(room, 12)
	_, bypass := NewInvite(testSecret, room, Bypass, 4, time.Now().Add(time.Hour))
	var mu sync.Mutex
	tokens := map[string]Token{} // the last one each fan was given
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			fan, invite := fmt.Sprint("fan-", i/2), "" // each of 40 twice
			switch {
			case i < 24:
				invite = link
			case i < 32:
				invite = bypass
			}
			if i >= 20 && i%2 == 0 {
				invite = "" // first by themselves
			}
			<-gate
			v, err := joinBy(t, lines[i%2], room, fan, invite)
			if err != nil {
				t.Errorf("%s: %v", fan, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if tokens[fan] == "" || invite != "" {
				tokens[fan] = v.Token
			}
		})
	}
	close(gate)
	wg.Wait()
	if v := refresh(t, lines[0], room).view; v.Waiting != 40 || v.Priority != 12 {
		t.Fatalf("%d wait, %d of them in the priority line", v.Waiting, v.Priority)
	}
	set(t, lines[0], room, func(s *Settings) { s.RatePerMinute = 60_000 })
	run(t, room, lines...)
	inside := lines[0].own(room).keys[kInside]
	admitted := map[string]bool{}
	eventually(t, 60*time.Second, "all are admitted", func() bool {
		for fan, token := range tokens {
			if admitted[fan] {
				continue
			}
			a, err := lines[len(admitted)%2].Claim(t.Context(), room, token)
			if n := rdb.ZCard(t.Context(), inside).Val(); n > 3 {
				t.Fatalf("%d inside with a cap of 3", n)
			}
			if err != nil {
				continue
			}
			admitted[fan] = true
			if err := lines[0].PutReport(t.Context(), room, Report{At: time.Unix(1, 0), Ended: []SlotRef{{PlaceID: a.PlaceID, JTI: a.JTI}}}); err != nil {
				t.Fatal(err)
			}
		}
		return len(admitted) == 40
	})
}

// Q15: the priority line comes back as the line does: by the tokens, in order, whoever
// shows theirs first.
func TestQ15_AnEmptiedRedisGivesPriorityPlacesBack(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb, shortLives)
	room := devstacktest.Name("hall")
	pg := newPostgres(newLine(t, rdb, shortLives), room, 2)
	pg.settings.PriorityShare = 50
	pg.turn(t)
	link := priorityInvite(room, 20)
	var plain, prior []*fanInLine
	for i := range 6 {
		f := &fanInLine{name: fmt.Sprint("fan-", i)}
		f.token = join(t, l, room, f.name).Token
		plain = append(plain, f)
		f = &fanInLine{name: fmt.Sprint("vip-", i)}
		f.token = joinPriority(t, l, room, f.name, link).Token
		prior = append(prior, f)
	}
	refresh(t, l, room)
	step(t, l, room) // calls one of each
	served := claim(t, l, room, plain[0].token)
	pg.exchange(served)
	pg.turn(t)
	if v := status(t, l, room, prior[0].token); v.Status != Called {
		t.Fatalf("%+v", v)
	}
	refresh(t, l, room)
	for _, f := range slices.Concat(plain[1:], prior[1:]) {
		f.poll(t, l, room)
	}
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	pg.turn(t)
	refresh(t, l, room)
	fans := slices.Concat(plain[1:], prior)
	rand.Shuffle(len(fans), func(i, j int) { fans[i], fans[j] = fans[j], fans[i] })
	for _, f := range fans {
		token := f.token
		if v := f.poll(t, l, room); v.Status != Waiting || !v.Room.Recovering || f.token != token {
			t.Errorf("%s: %+v", f.name, v)
		}
	}
	late := joinPriority(t, l, room, "late", link)
	eventually(t, 60*time.Second, "the recovery is over", func() bool {
		pg.turn(t)
		return !refresh(t, l, room).view.Recovering
	})
	for line, fans := range [][]*fanInLine{plain[1:], prior} {
		for i, f := range fans {
			f.shown = 0
			if v := f.poll(t, l, room); v.Status != Waiting || v.Position != i+1 || v.Priority != (line == 1) {
				t.Errorf("%s stands at %d of its line, not %d: %+v", f.name, v.Position, i+1, v)
			}
		}
	}
	if v := status(t, l, room, late.Token); v.Position != len(prior)+1 {
		t.Errorf("a newcomer is ahead of who came back: %+v", v)
	}
	if _, err := l.Claim(t.Context(), room, plain[0].token); err != nil {
		t.Errorf("who is inside: %v", err)
	}
	step(t, l, room) // one slot is free
	if v := status(t, l, room, plain[1].token); v.Status != Called {
		t.Errorf("%+v", v)
	}
}

// Who gathers by a priority invite takes no part in the draw: they stand in the priority
// line by arrival, with a number when the others get theirs.
func TestAPriorityPlaceIsNotDrawn(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	d.change(t, func(s *Settings) { s.PriorityShare = 50 })
	link := priorityInvite(d.Room, 10)
	var plain []Token
	for i := range 8 {
		plain = append(plain, join(t, l, d.Room, fmt.Sprint("fan-", i)).Token)
	}
	first := joinPriority(t, l, d.Room, "vip", link)
	moved := joinPriority(t, l, d.Room, "fan-7", link)
	refresh(t, l, d.Room)
	if v := status(t, l, d.Room, first.Token); !v.Undrawn || v.Position != 0 {
		t.Errorf("a number before the draw: %+v", v)
	}
	d.draw(t)
	eventually(t, 20*time.Second, "it is drawn", func() bool {
		d.drawOn(t, l)
		_, err := l.Drawn(t.Context(), d.Room)
		return err == nil
	})
	if res := d.finish(t); len(res.Entries) != 7*entryBytes {
		t.Errorf("%d took part", len(res.Entries)/entryBytes)
	}
	refresh(t, l, d.Room)
	for token, want := range map[Token]int{first.Token: 1, moved.Token: 2} {
		if v := status(t, l, d.Room, token); v.Status != Waiting || !v.Priority || v.Position != want || v.Token != token {
			t.Errorf("want %d: %+v", want, v)
		}
	}
	d.change(t, func(s *Settings) { s.Cap, s.RatePerMinute = 4, 1_000_000 })
	step(t, l, d.Room)
	// Both are called and stand by among the drawn, whose scores are lower than any time.
	set(t, l, d.Room, func(s *Settings) { s.Cap = 0; s.Draw = d.Draw })
	var called []Token
	for _, token := range append([]Token{first.Token, moved.Token}, plain[:7]...) {
		if status(t, l, d.Room, token).Status == Called {
			called = append(called, token)
			if _, err := l.Claim(t.Context(), d.Room, token); !isStandBy(err) {
				t.Errorf("%v", err)
			}
		}
	}
	if len(called) != 4 {
		t.Fatalf("%d called", len(called))
	}
	for i, name := range l.rdb.ZRange(t.Context(), l.own(d.Room).keys[kStandby], 0, -1).Val() {
		p, _ := l.verify(d.Room, called[i/2]) // the second and the fourth call were theirs
		if i%2 == 1 && name != string(p.member[:]) {
			t.Errorf("number %d of those standing by is another's", i+1)
		}
	}
}

// The range counts who is called earlier: whatever waits, whatever joins either line later.
func TestTheRangeOfAPlaceBesideAnotherLineHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		share := rapid.IntRange(0, 100).Draw(rt, "share")
		lines := [2]int{rapid.IntRange(0, 60).Draw(rt, "plain"), rapid.IntRange(0, 60).Draw(rt, "prior")}
		which := rapid.IntRange(0, 1).Draw(rt, "which")
		position := rapid.IntRange(1, 30).Draw(rt, "position")
		lines[which] = max(lines[which], position)
		b := &board{share: share, line: ranks{waiting: lines[0]}, prior: ranks{waiting: lines[1]}}
		score := int64(time.Now().UnixMicro())
		if which == 1 {
			score += apart
		}
		least, most, known := b.before(score, position)
		if !known {
			if own := []int{100 - share, share}[which]; own != 0 || lines[1-which] == 0 {
				rt.Fatalf("share %d, %v: nothing is known", share, lines)
			}
			return
		}
		alone := lines[1-which] == 0
		credit, calls := rapid.IntRange(0, 99).Draw(rt, "left over"), 0
		for left := position; left > 0; calls++ {
			if calls > 100_000 {
				rt.Fatalf("share %d, %v: never called", share, lines)
			}
			if !alone { // an empty line that fills changes the range, and it is told anew
				lines[1-which] += rapid.IntRange(0, 3).Draw(rt, "join")
			}
			from := which
			if lines[1-which] > 0 {
				if from, credit = 0, credit+share; credit >= 100 {
					from, credit = 1, credit-100
				}
			}
			if lines[from]--; from == which {
				left--
			}
		}
		if calls < least || calls > most {
			rt.Fatalf("share %d, place %d of line %d: called as number %d, told %d to %d", share, position, which, calls, least, most)
		}
	})
}

func TestTheWaitIsReckonedFromTheLinesShare(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 1000, func(s *Settings) { s.PriorityShare = 25 })
	link := priorityInvite(room, 1000)
	set(t, l, room, func(s *Settings) { s.State = "paused" }) // nobody is called meanwhile
	var plain, prior View
	for i := range 200 {
		plain = join(t, l, room, fmt.Sprint("fan-", i))
		if i == 100 {
			refresh(t, l, room)
		}
	}
	set(t, l, room, func(s *Settings) { s.State = "open" })
	if v := status(t, l, room, plain.Token); v.ETA == nil || v.ETA.High > 300*time.Second {
		t.Errorf("a room without a priority line has its whole rate: %+v", v.ETA)
	}
	for i := range 100 {
		prior = joinPriority(t, l, room, fmt.Sprint("vip-", i), link)
	}
	refresh(t, l, room)
	for token, truth := range map[Token]time.Duration{plain.Token: 266 * time.Second, prior.Token: 300 * time.Second} {
		v := status(t, l, room, token)
		if v.ETA == nil || v.ETA.Low > truth || v.ETA.High < truth || v.ETA.Low < truth/2 {
			t.Errorf("the wait is %s: %+v", truth, v.ETA)
		}
	}
	set(t, l, room, func(s *Settings) { s.PriorityShare = 0 })
	if v := status(t, l, room, prior.Token); v.ETA != nil || v.Position != 100 {
		t.Errorf("without a share nobody can tell: %+v", v)
	}
}

func TestAPriorityInviteIsSignedAsOne(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	i, link := NewInvite(testSecret, room, Priority, 3, time.Now().Add(time.Hour))
	read, err := l.readInvite(room, link, time.Now())
	if err != nil || read != i || i.Kind != Priority {
		t.Fatalf("%+v, %+v, %v", i, read, err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(link)
	for kind := range 256 {
		raw[0] = byte(kind)
		_, err := joinBy(t, l, room, fmt.Sprint("fan-", kind), base64.RawURLEncoding.EncodeToString(raw))
		if (err == nil) != (kind == 2) || err != nil && !errors.Is(err, ErrInviteInvalid) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
	// Where there is no line there is nothing to be ahead of, and nothing is counted.
	set(t, l, room, func(s *Settings) { s.Mode = "passthrough" })
	if v, err := joinBy(t, l, room, "passer", link); err != nil || v.Priority || v.Status != Called {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestAShareOutsideItsBoundsIsRefused(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60, 10, func(s *Settings) { s.PriorityShare = 40 })
	for _, share := range []int{-1, 101, 1 << 40} {
		err := l.PutSettings(t.Context(), Settings{
			Room: room, Mode: "fifo", State: "open", RatePerMinute: 60, Cap: 10, Run: 1, Version: 9, PriorityShare: share,
		})
		if err == nil {
			t.Errorf("share %d was taken", share)
		}
	}
	if v := refresh(t, l, room).view; v.PriorityShare != 40 || v.Version != 1 {
		t.Errorf("%+v", v)
	}
	// Settings that a version before this one shipped.
	l.rdb.HDel(t.Context(), l.own(room).keys[kSettings], "share")
	if v := refresh(t, l, room).view; v.PriorityShare != DefaultPriorityShare {
		t.Errorf("%+v", v)
	}
}

func TestTheMetricsTellThePriorityLine(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	l := newLine(t, dial(t, ""), func(o *Options) { o.Registerer = reg })
	room := openRoom(t, l, 1_000_000, 0, func(s *Settings) { s.PriorityShare = 50 })
	link := priorityInvite(room, 10)
	for i := range 3 {
		join(t, l, room, fmt.Sprint("fan-", i))
		joinPriority(t, l, room, fmt.Sprint("vip-", i), link)
	}
	refresh(t, l, room)
	told := func(want map[string]float64) {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "usher_queue_fans" && m.GetLabel()[1].GetValue() != "waiting" {
					continue
				}
				got[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%s is %v, want %v", name, got[name], n)
			}
		}
	}
	told(map[string]float64{"usher_queue_fans": 6, "usher_queue_priority_fans": 3})
	set(t, l, room, func(s *Settings) { s.Cap = 4 })
	step(t, l, room)
	refresh(t, l, room)
	told(map[string]float64{
		"usher_queue_fans": 2, "usher_queue_priority_fans": 1,
		"usher_queue_invitations_total": 4, "usher_queue_priority_invitations_total": 2,
	})
}
