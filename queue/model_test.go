package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the line as a person would keep it on paper: who stands where, who was
// called, who is inside. Pace is left out (the rate is so high that it never
// decides); who comes next, who comes back where, and the cap are in.
type model struct {
	slots    int
	share    int                 // percent of the calls for the priority line
	wait     map[string][]string // by line: who waits, in order of score
	both     int                 // calls while somebody waited in both lines
	given    int                 // of them, to the priority line
	mark     int64               // highest score of the line ever called
	lastTurn int64
	turn     map[string]int64 // of the called: their order among those standing by
	score    map[string]int64
	called   map[string]bool
	standby  map[string]bool
	inside   map[string]bool
	missed   map[string]bool      // may have their place back: a missed call or an unused pass
	restored map[string]bool      // have had it back
	served   map[string]time.Time // whose visit is over, and when it began; until they join anew
	retold   map[string]bool      // inside by booking's word, as Redis had forgotten them
	told     map[string]bool      // inside, and a report told of their session: their pass was used
}

func (m *model) enqueue(fan string, score int64) {
	m.score[fan] = score
	line := lineOf(score)
	i, _ := slices.BinarySearchFunc(m.wait[line], score, func(f string, s int64) int { return int(m.score[f] - s) })
	m.wait[line] = slices.Insert(m.wait[line], i, fan)
}

func lineOf(score int64) string {
	if preferred(score) {
		return "priority"
	}
	return "plain"
}

func (m *model) waits(fan string) bool {
	return slices.Contains(m.wait["plain"], fan) || slices.Contains(m.wait["priority"], fan)
}

func (m *model) position(fan string) int {
	return slices.Index(m.wait[lineOf(m.score[fan])], fan) + 1
}

func (m *model) leaves(fan string) {
	for line, fans := range m.wait {
		m.wait[line] = slices.DeleteFunc(fans, func(f string) bool { return f == fan })
	}
}

// callNext calls whose turn it is; "" when nobody waits.
func (m *model) callNext() string {
	line := "plain"
	switch plain, prior := len(m.wait["plain"]), len(m.wait["priority"]); {
	case plain+prior == 0:
		return ""
	case plain == 0:
		line = "priority"
	case prior > 0:
		if m.both++; m.both*m.share/100 > m.given {
			m.given++
			line = "priority"
		}
	}
	fan := m.wait[line][0]
	m.wait[line] = m.wait[line][1:]
	m.called[fan] = true
	if line == "plain" {
		m.mark = max(m.mark, m.score[fan])
		m.turn[fan] = m.score[fan]
	} else {
		m.lastTurn = max(m.lastTurn, m.mark) + 1
		m.turn[fan] = m.lastTurn
	}
	return fan
}

func (m *model) state(fan string) Status {
	switch {
	case m.waits(fan):
		return Waiting
	case m.called[fan]:
		return Called
	case m.inside[fan]:
		return Admitted
	}
	return Expired
}

func (m *model) admit(fan string) {
	delete(m.called, fan)
	delete(m.standby, fan)
	m.inside[fan] = true
}

// machine drives the real line and the model side by side.
type machine struct {
	t      *testing.T
	l      *Line
	room   string
	m      *model
	tokens map[string]Token
	invite string // into the priority line
}

var machineFans = []string{"ann", "bob", "cem", "dee", "eve", "fay"}

func (x *machine) join(rt *rapid.T) {
	fan := rapid.SampledFrom(machineFans).Draw(rt, "fan")
	before := x.m.state(fan)
	invite := ""
	if rapid.Bool().Draw(rt, "invited") {
		invite = x.invite
	}
	v, err := joinBy(x.t, x.l, x.room, fan, invite)
	if err != nil {
		rt.Fatal(err)
	}
	p, err := x.l.verify(x.room, v.Token)
	if err != nil {
		rt.Fatal(err)
	}
	better := invite != "" && !preferred(x.m.score[fan]) && x.m.share > 0
	switch {
	case before == Waiting && better:
		if v.Created || !v.Priority || arrival(p.score) <= arrival(x.m.score[fan]) {
			rt.Fatalf("%s was not moved to the priority line: %+v", fan, v)
		}
		x.m.leaves(fan)
		delete(x.m.restored, fan)
		x.m.enqueue(fan, p.score)
	case before != Expired:
		if x.m.retold[fan] {
			v.Token = x.tokens[fan] // Redis knows the visit, not the place
			p.score = x.m.score[fan]
		}
		if v.Status != before || v.Created || p.score != x.m.score[fan] {
			rt.Fatalf("%s was %s at %d, joined again: %s at %d", fan, before, x.m.score[fan], v.Status, p.score)
		}
	case x.m.missed[fan] && !better:
		if p.score != x.m.score[fan] {
			rt.Fatalf("%s's place was not given back: %d, had %d", fan, p.score, x.m.score[fan])
		}
		delete(x.m.missed, fan)
		x.m.restored[fan] = true
		x.m.enqueue(fan, p.score)
	default:
		for other, s := range x.m.score {
			if arrival(s) >= arrival(p.score) {
				rt.Fatalf("%s at the tail has %d, %s has %d", fan, p.score, other, s)
			}
		}
		if v.Priority != (invite != "") {
			rt.Fatalf("%s joined the wrong line: %+v", fan, v)
		}
		delete(x.m.missed, fan)
		delete(x.m.restored, fan)
		delete(x.m.served, fan)
		x.m.enqueue(fan, p.score)
	}
	if v.Status == Waiting && v.Position != x.m.position(fan) {
		rt.Fatalf("%s is told %d, stands at %d", fan, v.Position, x.m.position(fan))
	}
	x.tokens[fan] = v.Token
}

func (x *machine) leave(rt *rapid.T) {
	fan := x.known(rt)
	if err := x.l.Leave(x.t.Context(), x.room, x.tokens[fan]); err != nil {
		rt.Fatal(err)
	}
	if x.m.inside[fan] {
		return // a visit is not a place in line
	}
	x.m.leaves(fan)
	for _, set := range []map[string]bool{x.m.called, x.m.standby, x.m.missed, x.m.restored} {
		delete(set, fan)
	}
}

func (x *machine) call(rt *rapid.T) {
	step(x.t, x.l, x.room)
	// Stand-bys first, in order, while there are slots …
	for len(x.m.standby) > 0 && len(x.m.inside) < x.m.slots {
		head := ""
		for f := range x.m.standby {
			if head == "" || x.m.turn[f] < x.m.turn[head] {
				head = f
			}
		}
		x.m.admit(head)
	}
	// … then invitations for the rest; how many is call.lua's own sum, who is not.
	called := x.members(rt, kCalled)
	for len(x.m.called) < len(called) {
		if fan := x.m.callNext(); !called[fan] {
			rt.Fatalf("called %v, but it was %q's turn: %d of %d calls were the priority line's, share %d %%, %v wait",
				called, fan, x.m.given, x.m.both, x.m.share, x.m.wait)
		}
	}
	if free := x.m.slots - len(x.m.inside); free > 0 && len(called) < free && len(x.m.wait["plain"])+len(x.m.wait["priority"]) > 0 {
		rt.Fatalf("%d slots free, %d called, %v wait", free, len(called), x.m.wait)
	}
}

func (x *machine) claim(rt *rapid.T) {
	fan := x.known(rt)
	_, err := x.l.Claim(x.t.Context(), x.room, x.tokens[fan])
	switch x.m.state(fan) {
	case Waiting:
		if !errors.Is(err, ErrNotCalledYet) {
			rt.Fatalf("%s waits, claim: %v", fan, err)
		}
	case Admitted:
		// Granted a few µs ahead: the pass is there in a moment.
		if err != nil && !isStandBy(err) {
			rt.Fatalf("%s is inside, claim: %v", fan, err)
		}
	case Called:
		switch {
		case err == nil:
			for f := range x.m.standby {
				if f != fan && x.m.turn[f] < x.m.turn[fan] {
					rt.Fatalf("%s was admitted before %s, who stands by and came first", fan, f)
				}
			}
			x.m.admit(fan)
		case isStandBy(err):
			x.m.standby[fan] = true
		default:
			rt.Fatalf("%s is called, claim: %v", fan, err)
		}
	case Left, Expired:
		if !errors.Is(err, ErrExpired) {
			rt.Fatalf("%s has no place, claim: %v", fan, err)
		}
	}
}

func (x *machine) miss(rt *rapid.T) {
	r := x.l.own(x.room)
	// No call runs out soon after a recovery (holdclaim_test.go); this is later.
	if err := x.l.rdb.HDel(x.t.Context(), r.keys[kState], "grace").Err(); err != nil {
		rt.Fatal(err)
	}
	for fan := range x.m.called {
		if x.m.standby[fan] {
			continue
		}
		p, _ := x.l.verify(x.room, x.tokens[fan])
		if err := x.l.rdb.ZAdd(x.t.Context(), r.keys[kDue], z(1, string(p.member[:]))).Err(); err != nil {
			rt.Fatal(err)
		}
		delete(x.m.called, fan)
		if !x.m.restored[fan] {
			x.m.missed[fan] = true
		}
		delete(x.m.restored, fan)
	}
	x.call(rt)
}

func (x *machine) release(rt *rapid.T) {
	fan := x.known(rt)
	p, _ := x.l.verify(x.room, x.tokens[fan])
	s := slotsOf(x.t, x.l, x.room)[string(p.member[:])]
	if (s.jti != "") != x.m.inside[fan] {
		rt.Fatalf("%s inside: %v by the model, slot %+v", fan, x.m.inside[fan], s)
	}
	r := Report{At: time.Unix(1, 0), Ended: []SlotRef{{PlaceID: p.id(), JTI: s.jti}}}
	for range 2 {
		if err := x.l.PutReport(x.t.Context(), x.room, r); err != nil {
			rt.Fatal(err)
		}
	}
	if x.m.inside[fan] {
		delete(x.m.restored, fan)
		x.visited(fan, p.score)
	}
	delete(x.m.inside, fan)
}

// visited: the visit that came of the place is over. The line allows 5 s between the
// clocks, which in this test would reach into the fan's next place.
func (x *machine) visited(fan string, score int64) {
	x.m.served[fan] = instant(score).Add(-5 * time.Second)
	delete(x.m.retold, fan)
	delete(x.m.told, fan)
}

// forget empties Redis of the room and lives through the recovery. Everybody who holds
// a token shows it, in any order.
func (x *machine) forget(rt *rapid.T) {
	ctx, r := x.t.Context(), x.l.own(x.room)
	living, served := []SlotRef{}, []Served{}
	for m, s := range slotsOf(x.t, x.l, x.room) {
		living = append(living, SlotRef{PlaceID: fmt.Sprintf("%x", m), JTI: s.jti})
	}
	for fan, began := range x.m.served {
		p, _ := x.l.identify(x.room, Fan{ID: fan})
		served = append(served, Served{PlaceID: p.id(), Began: began})
	}
	must := func(err error) {
		if err != nil {
			rt.Fatal(err)
		}
	}
	must(x.l.rdb.Del(ctx, r.keys...).Err())
	must(x.l.PutSettings(ctx, Settings{
		Room: x.room, Title: "Hall", Mode: "fifo", State: "open", RatePerMinute: 1_000_000, Cap: x.m.slots, Run: 1, Version: 1,
		PriorityShare: x.m.share,
	}))
	b := refresh(x.t, x.l, x.room)
	if !b.view.Recovering {
		rt.Fatal("nobody noticed that everything was forgotten")
	}
	must(x.l.PutReport(ctx, x.room, Report{At: time.Unix(1, 0), Living: living}))
	must(x.l.PutServed(ctx, x.room, served))
	var back []string
	for fan := range x.tokens {
		if _, over := x.m.served[fan]; !over && !x.m.inside[fan] {
			back = append(back, fan)
		}
	}
	slices.Sort(back)
	for _, fan := range rapid.Permutation(back).Draw(rt, "show their places") {
		if v := status(x.t, x.l, x.room, x.tokens[fan]); v.Status != Waiting || !v.Room.Recovering {
			rt.Fatalf("%s had a place, and is %s", fan, v.Status)
		}
		if _, err := x.l.Claim(ctx, x.room, x.tokens[fan]); err == nil {
			rt.Fatalf("%s was admitted in the recovery", fan)
		}
	}
	step(x.t, x.l, x.room)
	for fan := range x.m.served {
		if v := status(x.t, x.l, x.room, x.tokens[fan]); v.Status != Expired {
			rt.Fatalf("%s was served, and is %s again", fan, v.Status)
		}
	}
	must(x.l.rdb.HSet(ctx, r.keys[kState], "hold", 1).Err()) // the hold is over
	if ended, err := x.l.Resume(ctx, x.room, b.inc, time.Now()); err != nil || !ended {
		rt.Fatalf("the recovery goes on, %v", err)
	}
	for _, set := range []map[string]bool{x.m.called, x.m.standby, x.m.missed, x.m.restored} {
		clear(set)
	}
	for fan := range x.m.inside {
		x.m.retold[fan] = true
	}
	clear(x.m.wait)
	x.m.both, x.m.given, x.m.mark, x.m.lastTurn = 0, 0, 0, 0
	for _, fan := range back {
		x.m.enqueue(fan, x.score(rt, fan))
	}
}

func (x *machine) score(rt *rapid.T, fan string) int64 {
	p, err := x.l.verify(x.room, x.tokens[fan])
	if err != nil {
		rt.Fatal(err)
	}
	return p.score
}

// unused lets a fan's pass run out without a session.
func (x *machine) unused(rt *rapid.T) {
	fan := x.known(rt)
	p, _ := x.l.verify(x.room, x.tokens[fan])
	r := Report{}
	for m, s := range slotsOf(x.t, x.l, x.room) {
		r.At = instant(s.expires).Add(time.Hour)
		if m != string(p.member[:]) {
			r.Living = append(r.Living, SlotRef{PlaceID: fmt.Sprintf("%x", m), JTI: s.jti})
		}
	}
	for range 2 {
		if err := x.l.PutReport(x.t.Context(), x.room, r); err != nil {
			rt.Fatal(err)
		}
	}
	if x.m.inside[fan] {
		delete(x.m.inside, fan)
		visit := x.m.retold[fan] || x.m.told[fan]
		if x.m.missed[fan] = !x.m.restored[fan] && !visit; visit {
			x.visited(fan, p.score) // there was a session: booking told of it
		}
		delete(x.m.restored, fan)
	}
	for other := range x.m.inside { // this report told of a session of each
		x.m.told[other] = true
	}
}

func (x *machine) known(rt *rapid.T) string {
	fan := rapid.SampledFrom(machineFans).Draw(rt, "fan")
	if _, ok := x.tokens[fan]; !ok {
		rt.Skip("never joined")
	}
	return fan
}

func (x *machine) members(rt *rapid.T, key int) map[string]bool {
	names := map[string]bool{}
	ms, err := x.l.rdb.ZRange(x.t.Context(), x.l.own(x.room).keys[key], 0, -1).Result()
	if err != nil {
		rt.Fatal(err)
	}
	for _, m := range ms {
		for _, fan := range machineFans {
			if p, _ := x.l.identify(x.room, Fan{ID: fan}); string(p.member[:]) == m {
				names[fan] = true
			}
		}
	}
	return names
}

// check holds after every step: each fan in one place, and where the model says.
func (x *machine) check(rt *rapid.T) {
	wait, prior, called, inside := x.members(rt, kWait), x.members(rt, kPriority), x.members(rt, kCalled), x.members(rt, kInside)
	for _, fan := range machineFans {
		n := 0
		for _, in := range []bool{wait[fan], prior[fan], called[fan], inside[fan]} {
			if in {
				n++
			}
		}
		st := x.m.state(fan)
		if n > 1 || (n == 0) != (st == Expired) || (wait[fan] || prior[fan]) != (st == Waiting) || prior[fan] && !preferred(x.m.score[fan]) || inside[fan] != (st == Admitted) {
			rt.Fatalf("%s should be %s: waiting %v, called %v, inside %v", fan, st, wait[fan], called[fan], inside[fan])
		}
	}
	if len(inside) > x.m.slots {
		rt.Fatalf("%d inside, cap %d", len(inside), x.m.slots)
	}
	due, standby := x.members(rt, kDue), x.members(rt, kStandby)
	for fan := range called {
		if due[fan] == standby[fan] {
			rt.Fatalf("%s: window running %v, standing by %v", fan, due[fan], standby[fan])
		}
	}
	if len(due)+len(standby) != len(called) {
		rt.Fatalf("called %v, windows %v, standing by %v", called, due, standby)
	}
}

func TestTheLineAgreesWithAModel(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		l := newLine(t, rdb)
		slots, share := rapid.IntRange(1, 3).Draw(rt, "cap"), rapid.SampledFrom([]int{0, 1, 30, 50, 67, 100}).Draw(rt, "share")
		x := &machine{
			t: t, l: l, tokens: map[string]Token{},
			room: openRoom(t, l, 1_000_000, slots, func(s *Settings) { s.PriorityShare = share }),
			m: &model{
				slots: slots, share: share, wait: map[string][]string{}, turn: map[string]int64{}, score: map[string]int64{}, called: map[string]bool{}, standby: map[string]bool{},
				inside: map[string]bool{}, missed: map[string]bool{}, restored: map[string]bool{}, served: map[string]time.Time{}, retold: map[string]bool{}, told: map[string]bool{},
			},
		}
		_, x.invite = NewInvite(testSecret, x.room, Priority, MaxInviteQuota, time.Now().Add(time.Hour))
		rt.Repeat(map[string]func(*rapid.T){
			"join": x.join, "leave": x.leave, "call": x.call, "claim": x.claim, "miss": x.miss, "release": x.release, "unused": x.unused,
			"forget": x.forget,
			"":       x.check,
		})
	})
}

// What a waiting fan costs in Redis: go test -bench Memory -run '^$' ./queue
func BenchmarkMemoryOfAWaitingFan(b *testing.B) {
	rdb := ownRedis(b)
	l := newLine(b, rdb)
	const fans = 200_000
	for b.Loop() {
		room := openRoom(b, l, 0, 1)
		crowd(b, l, room, fans)
		total := int64(0)
		for _, key := range l.own(room).keys {
			n, err := rdb.MemoryUsage(b.Context(), key, 0).Result()
			if err == nil {
				total += n
			}
		}
		b.ReportMetric(float64(total)/fans, "bytes/fan")
		rdb.FlushAll(b.Context())
	}
}

// A poll from memory: verified token, position, answer.
func BenchmarkPoll(b *testing.B) {
	l := newLine(b, dial(b, ""))
	room := openRoom(b, l, 0, 1)
	tokens := crowd(b, l, room, 20_000)
	refresh(b, l, room)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if _, err := l.Status(b.Context(), room, tokens[i%len(tokens)], 0); err != nil {
			b.Fatal(err)
		}
	}
}

// One reading of a long line, which every edge makes each second.
func BenchmarkBoard(b *testing.B) {
	l := newLine(b, ownRedis(b))
	room := openRoom(b, l, 0, 1)
	crowd(b, l, room, 200_000)
	for b.Loop() {
		if err := l.refresh(b.Context(), l.own(room)); err != nil {
			b.Fatal(fmt.Errorf("board: %w", err))
		}
	}
}
