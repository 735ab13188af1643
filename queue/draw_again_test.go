package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestTheSeedIsNotInRedisBeforeTheDrawing(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	early := d.Settings
	early.Version++
	early.Draw.Seed = d.seed()
	for _, state := range []string{"scheduled", "gathering", "open", "closed"} {
		early.State = state
		if err := l.PutSettings(t.Context(), early); err == nil {
			t.Errorf("the seed is shipped in state %s before the drawing", state)
		}
	}
	seen := func() string {
		s, err := l.rdb.HGetAll(t.Context(), l.own(d.Room).keys[kSettings]).Result()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(s)
	}
	if all := seen(); strings.Contains(all, fmt.Sprintf("%x", d.seed())) || !strings.Contains(all, d.Draw.Commitment) {
		t.Errorf("before the drawing Redis has %s", all)
	}
	d.draw(t)
	if v, _ := l.Room(d.Room); !strings.Contains(seen(), fmt.Sprintf("%x", d.seed())) || v.Draw.Seed != "" || v.Draw.Commitment == "" {
		t.Errorf("while it is drawn everybody is told %+v", v.Draw)
	}
}

// Leaving, leaving and joining again, and joining late, at each point of a drawing.
func TestWhoLeavesDuringTheDrawingIsNotDrawn(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	tokens := crowd(t, l, d.Room, 2600)
	leave := func(i int) {
		t.Helper()
		if err := l.Leave(t.Context(), d.Room, tokens[i]); err != nil {
			t.Fatal(err)
		}
	}
	back := func(i int) Token { return join(t, l, d.Room, fmt.Sprintf("%s-%d", d.Room, i)).Token }
	leave(0) // before: in no list
	leave(1)
	again := back(1) // before: in the list, at the end of the arrivals
	d.draw(t)
	stepOf := func(args ...any) string {
		t.Helper()
		reply, err := l.runList(t.Context(), drawScript, l.own(d.Room).keys, append([]any{1, collectBound, drawGone, l.witness(l.own(d.Room))}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return text(reply, 0)
	}
	stepOf("")
	stepOf("") // the first thousand are in the list
	leave(10)  // in the list, and gone
	leave(2500)
	leave(11)
	backAgain := back(11) // in the list, and behind it
	for stepOf("") != "digest" {
	}
	leave(20)
	twice := back(2500)
	d.drawOn(t, l)
	leave(30)
	res := d.finish(t)
	b := refresh(t, l, d.Room)

	listed := map[string]bool{}
	for e := res.Entries; len(e) > 0; e = e[entryBytes:] {
		listed[string(e[:entryBytes])] = true
	}
	for i, want := range map[int]bool{0: false, 1: true, 10: true, 11: true, 20: true, 30: true, 2500: false} {
		if p, _ := l.verify(d.Room, tokens[i]); listed[string(p.member[:])] != want {
			t.Errorf("fan %d in the list: %v", i, !want)
		}
	}
	for _, i := range []int{0, 10, 20, 30} {
		if v := status(t, l, d.Room, tokens[i]); v.Status != Left {
			t.Errorf("fan %d left and is told %s %d", i, v.Status, v.Position)
		}
	}
	for _, late := range []Token{backAgain, twice} {
		if v := status(t, l, d.Room, late); v.Position <= b.view.Waiting-2 {
			t.Errorf("who left the draw and came again stands at %d of %d", v.Position, b.view.Waiting)
		}
	}
	if v := status(t, l, d.Room, tokens[11]); v.Position <= b.view.Waiting-2 || v.Token != backAgain {
		t.Errorf("the old token of who came again is told %d of %d", v.Position, b.view.Waiting)
	}
	if v := status(t, l, d.Room, again); v.Status != Waiting || v.Token == again {
		t.Errorf("who came again in time is not drawn: %+v", v)
	}
}

// After a draw fans are called in the drawn order, a missed call and an unused pass
// are forgiven as ever, and tokens of the gathering serve to the end.
func TestTheDrawnLineIsServedInOrder(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	d.Cap, d.RatePerMinute = 3, 1_000_000
	tokens := crowd(t, l, d.Room, 50)
	d.draw(t)
	d.drawOn(t, l)
	d.finish(t)
	late := join(t, l, d.Room, "late")
	refresh(t, l, d.Room)
	byPlace := map[string]Token{}
	for _, tok := range tokens {
		p, _ := l.verify(d.Room, tok)
		byPlace[string(p.member[:])] = tok
	}
	inLine, err := l.rdb.ZRange(t.Context(), l.own(d.Room).keys[kWait], 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	step(t, l, d.Room)
	if m := l.own(d.Room).mark.Load(); m <= 0 || m >= drawnScores {
		t.Errorf("the watermark is %d, not a drawn score", m)
	}
	first := byPlace[inLine[0]]
	if v := status(t, l, d.Room, first); v.Status != Called {
		t.Fatalf("the first one drawn is %s", v.Status)
	}
	adm := claim(t, l, d.Room, first)
	if m := l.own(d.Room).mark.Load(); m >= drawnScores {
		t.Errorf("a token of the gathering raised the watermark to %d, above all drawn places", m)
	}
	if v := status(t, l, d.Room, byPlace[inLine[40]]); v.Position == 0 || v.Position > 41 {
		t.Errorf("number %d after one admission, was 41", v.Position)
	}
	// The pass is not used: the drawn place comes back, once.
	if err := l.PutReport(t.Context(), d.Room, Report{At: adm.ExpiresAt.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	v, err := l.Join(t.Context(), d.Room, Fan{Place: first})
	if err != nil || v.Created || v.Position > 3 {
		t.Errorf("after an unused pass: %+v, %v", v, err)
	}
	if v := status(t, l, d.Room, late.Token); v.Position < 45 {
		t.Errorf("who came late stands at %d", v.Position)
	}
}

// A reset ends the places and draws anew, with nothing left of the draw before.
func TestAResetDrawsAnew(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	old := crowd(t, l, d.Room, 30)
	d.draw(t)
	d.drawOn(t, l)
	d.finish(t)
	step(t, l, d.Room)
	refresh(t, l, d.Room)
	first := slices.IndexFunc(old, func(tok Token) bool { return status(t, l, d.Room, tok).Status == Called })
	adm := claim(t, l, d.Room, old[first])

	d.change(t, func(s *Settings) {
		s.Run, s.State = 2, "gathering"
		s.Draw = DrawSettings{Commitment: DrawCommitment(s.Room, 2, d.seed())}
	})
	refresh(t, l, d.Room)
	if _, err := l.Status(t.Context(), d.Room, old[0], 0); !errors.Is(err, ErrOldRun) {
		t.Errorf("a place of before the reset: %v", err)
	}
	if _, _, err := l.Entries(t.Context(), d.Room, 0, 10); !errors.Is(err, ErrNotDrawn) {
		t.Errorf("the list of before the reset: %v", err)
	}
	if v, _ := l.Room(d.Room); v.Draw.Seed != "" || !v.Draw.At.IsZero() {
		t.Errorf("after the reset %+v", v.Draw)
	}
	// The visit of before goes on; when its pass comes to nothing, its drawn place of
	// the former run is no place in this one.
	if err := l.PutReport(t.Context(), d.Room, Report{At: adm.ExpiresAt.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if n := l.rdb.ZCard(t.Context(), l.own(d.Room).keys[kMissed]).Val(); n != 0 {
		t.Errorf("%d drawn places of the former run may come back", n)
	}
	v := join(t, l, d.Room, fmt.Sprintf("%s-%d", d.Room, first))
	if !v.Created {
		t.Errorf("joining after the reset: %+v", v)
	}
	crowd(t, l, d.Room, 20)
	d.draw(t)
	d.drawOn(t, l)
	if res := d.finish(t); res.Run != 2 || len(res.Entries) < 20*entryBytes {
		t.Errorf("drawn anew: run %d, %d places", res.Run, len(res.Entries)/entryBytes)
	}
}

// A Redis that lost the list, or the numbers, gets them back, and calls nobody before.
func TestALostDrawIsPutBack(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	crowd(t, l, d.Room, 3000)
	d.draw(t)
	d.drawOn(t, l)
	res := d.finish(t)
	keys := l.own(d.Room).keys
	drawn, err := l.rdb.ZRangeWithScores(t.Context(), keys[kWait], 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	// As after a failover to a replica that is behind, and worse: half of the line has
	// the scores of the gathering, the list and the state's word of it are gone.
	for i, z := range drawn {
		if i%2 == 0 {
			l.rdb.ZAdd(t.Context(), keys[kWait], redis.Z{Score: float64(res.Cut - int64(i)), Member: z.Member})
		}
	}
	l.rdb.Del(t.Context(), keys[kEntries])
	l.rdb.HDel(t.Context(), keys[kState], "draw", "drawat", "drawn", "cut", "drawdigest")
	step(t, l, d.Room)
	if n := l.rdb.ZCard(t.Context(), keys[kCalled]).Val(); n != 0 {
		t.Fatalf("%d called out of a line that is in no order", n)
	}
	if ok, err := l.KeepsEntries(t.Context(), d.Room, res.Digest, 3000); ok || err != nil {
		t.Fatalf("the list is there: %v, %v", ok, err)
	}
	if _, _, err := l.Entries(t.Context(), d.Room, 0, 10); !errors.Is(err, ErrStale) {
		t.Errorf("a list that is not there: %v", err)
	}
	wrong := res
	wrong.Digest[0] ^= 1
	for _, put := range []DrawResult{wrong, res, res} {
		if err := l.PutEntries(t.Context(), d.Room, put); err != nil {
			t.Fatal(err)
		}
	}
	d.drawOn(t, l)
	again, err := l.rdb.ZRangeWithScores(t.Context(), keys[kWait], 0, -1).Result()
	if err != nil || !slices.Equal(again, drawn) {
		t.Errorf("the order after the loss is another one, %v", err)
	}
	if ok, err := l.KeepsEntries(t.Context(), d.Room, res.Digest, 3000); !ok || err != nil {
		t.Errorf("the list is not there: %v, %v", ok, err)
	}
	step(t, l, d.Room)
	if n := l.rdb.ZCard(t.Context(), keys[kCalled]).Val(); n == 0 {
		t.Error("nobody is called after the repair")
	}
}

// A room that called fans before it became a draw takes them into it.
func TestFansCalledBeforeTakePart(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	d := gatheringRoom(t, l)
	d.change(t, func(s *Settings) { s.Mode, s.State = "fifo", "open" })
	tokens := crowd(t, l, d.Room, 40)
	step(t, l, d.Room)
	other := newLine(t, rdb)
	refresh(t, other, d.Room)
	if other.own(d.Room).mark.Load() < drawnScores {
		t.Fatal("nobody was called")
	}
	d.change(t, func(s *Settings) { s.Mode, s.State = "draw", "gathering" })
	d.draw(t)
	d.drawOn(t, l)
	if res := d.finish(t); len(res.Entries) != 40*entryBytes {
		t.Errorf("%d of 40 took part", len(res.Entries)/entryBytes)
	}
	// The watermark of before lies above every drawn place: kept, each poll would ask Redis.
	for _, edge := range []*Line{l, other} {
		b := refresh(t, edge, d.Room)
		for _, tok := range tokens {
			if p, _ := edge.verify(d.Room, tok); !b.knows(b.current(p), edge.own(d.Room).mark.Load()) {
				t.Fatalf("watermark %d: memory does not answer for a drawn place", edge.own(d.Room).mark.Load())
			}
		}
	}
}

// A step that comes late, or twice, finds the cursor elsewhere and does nothing.
func TestAStepOfADrawingCountsAtItsCursorOnly(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	crowd(t, l, d.Room, 600)
	d.draw(t)
	r := l.own(d.Room)
	b := refresh(t, l, d.Room)
	work := drawWork{l: l, r: r, b: b}
	send := func(args ...any) []any {
		t.Helper()
		reply, err := l.runList(t.Context(), drawScript, r.keys, append([]any{1, collectBound, drawGone, l.witness(r)}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	reply := send("")
	for text(reply, 0) == "collect" {
		reply = send("")
	}
	args, err := work.digest(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	reply = send(args...)
	if again := send("digest", strings.Repeat("0", 64)); text(again, 4) != text(reply, 4) {
		t.Errorf("a second digest counts: %v", again)
	}
	args, err = work.scores(t.Context(), 0, 600, text(reply, 4))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if reply = send(args...); number(reply, 1) != scoreBound {
			t.Fatalf("the cursor stands at %d", number(reply, 1))
		}
	}
	d.drawOn(t, l)
	res := d.finish(t)
	want := NewDrawer(d.seed(), res.Digest, d.Draw.PublicValue).Rank(res.Entries)
	got, err := l.rdb.ZRangeWithScores(t.Context(), r.keys[kWait], 0, -1).Result()
	if err != nil || len(got) != len(want) {
		t.Fatal(len(got), err)
	}
	for i, z := range got {
		if z.Member != string(want[i].Place[:]) || int64(z.Score) != want[i].Score {
			t.Fatalf("rank %d is %x", i+1, z.Member)
		}
	}
}

func TestADrawOfNobody(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	d.draw(t)
	d.drawOn(t, l)
	if res := d.finish(t); len(res.Entries) != 0 || res.Digest != EntriesDigest(nil) {
		t.Errorf("%+v", res)
	}
	refresh(t, l, d.Room)
	if v := join(t, l, d.Room, "late"); v.Position != 1 {
		t.Errorf("the first one to come is told %d", v.Position)
	}
	step(t, l, d.Room)
	if n := l.rdb.ZCard(t.Context(), l.own(d.Room).keys[kCalled]).Val(); n != 1 {
		t.Errorf("%d called", n)
	}
}

// Redis is emptied in the middle of a drawing: none is begun among the few who are
// back, and after the hold all who came back are drawn once more.
func TestNoDrawIsMadeAmongTheFewWhoAreBack(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	d := gatheringRoom(t, l)
	tokens := crowd(t, l, d.Room, 600)
	refresh(t, l, d.Room)
	d.draw(t)
	refresh(t, l, d.Room)
	for range 4 { // begun, collected, half drawn
		if _, err := l.runList(t.Context(), drawScript, l.own(d.Room).keys, 1, collectBound, drawGone, l.witness(l.own(d.Room)), ""); err != nil {
			t.Fatal(err)
		}
	}
	rdb.FlushAll(t.Context())
	d.ship(t)
	for i := range 10 {
		if v := status(t, l, d.Room, tokens[i]); v.Status != Waiting || v.Position != 0 {
			t.Errorf("fan %d is told %+v", i, v)
		}
	}
	if err := l.drawOn(t.Context(), l.own(d.Room)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Drawn(t.Context(), d.Room); !errors.Is(err, ErrNotDrawn) {
		t.Fatalf("drawn among ten of 600: %v", err)
	}
	for _, tok := range tokens {
		if v := status(t, l, d.Room, tok); v.Status != Waiting {
			t.Fatalf("after the loss: %s", v.Status)
		}
	}
	rdb.HDel(t.Context(), l.own(d.Room).keys[kState], "hold") // the recovery's end is tested where it is made
	d.drawOn(t, l)
	if res := d.finish(t); len(res.Entries) != 600*entryBytes {
		t.Errorf("%d of 600 took part", len(res.Entries)/entryBytes)
	}
}

// Redis is emptied after the draw: whoever shows a token, even of the gathering, stands
// where they were drawn, and what was published is published again.
func TestQ15_ADrawnLineComesBack(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	l := newLine(t, rdb)
	d := gatheringRoom(t, l)
	tokens := crowd(t, l, d.Room, 300)
	d.draw(t)
	d.drawOn(t, l)
	res := d.finish(t)
	late := join(t, l, d.Room, "late")
	refresh(t, l, d.Room)
	for i := range 100 { // a third have their drawn token
		tokens[i] = status(t, l, d.Room, tokens[i]).Token
	}
	keys := l.own(d.Room).keys
	drawn, err := rdb.ZRangeWithScores(t.Context(), keys[kWait], 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	rdb.FlushAll(t.Context())
	d.ship(t)
	refresh(t, l, d.Room)
	for _, tok := range append(slices.Clone(tokens), late.Token) {
		if v := status(t, l, d.Room, tok); v.Status != Waiting {
			t.Fatalf("after the loss: %+v", v)
		}
	}
	if err := l.PutEntries(t.Context(), d.Room, res); err != nil {
		t.Fatal(err)
	}
	d.drawOn(t, l)
	back, err := rdb.ZRangeWithScores(t.Context(), keys[kWait], 0, -1).Result()
	if err != nil || !slices.Equal(back, drawn) {
		t.Errorf("%d came back of %d, or in another order, %v", len(back), len(drawn), err)
	}
	if list := publishedList(t, l, d.Room); strings.Count(list, "\n") != 300 {
		t.Errorf("the list has %d lines", strings.Count(list, "\n"))
	}
}
