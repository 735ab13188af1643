package queue

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func codeOf(t testing.TB, l *Line, room string, token Token, keep bool) string {
	t.Helper()
	c, err := l.NewMoveCode(t.Context(), room, token, keep)
	if err != nil {
		t.Fatalf("code: %v", err)
	}
	return c.Code
}

func move(t testing.TB, l *Line, room, fan, code string) View {
	t.Helper()
	v, err := l.Move(t.Context(), room, Fan{ID: fan, Bound: true}, code)
	if err != nil {
		t.Fatalf("move to %s: %v", fan, err)
	}
	return v
}

func customerOf(t testing.TB, l *Line, room string, token Token) string {
	t.Helper()
	p, err := l.verify(room, token)
	if err != nil {
		t.Fatal(err)
	}
	return p.customerID()
}

func TestAPlaceMovesToAnotherBrowser(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	join(t, l, room, "first")
	old, err := l.Join(t.Context(), room, Fan{ID: "phone", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	join(t, l, room, "third")
	refresh(t, l, room)
	made, err := l.NewMoveCode(t.Context(), room, old.Token, false)
	if err != nil || len(made.Code) != 11 || made.Code[5] != '-' || time.Until(made.Expires).Round(time.Minute) != MoveLife {
		t.Fatalf("%+v, %v", made, err)
	}
	got := move(t, l, room, "laptop", made.Code)
	if got.Position != 2 || got.Status != Waiting || got.PlaceID == old.PlaceID || !got.Bound {
		t.Fatalf("%+v", got)
	}
	if customerOf(t, l, room, got.Token) != customerOf(t, l, room, old.Token) {
		t.Error("the customer stayed behind: limits would begin anew")
	}
	if b, bound, err := l.Bond(room, got.Token, []string{"laptop"}); err != nil || !bound || b == "" {
		t.Errorf("bound to another browser: %q %t %v", b, bound, err)
	}
	if n := refresh(t, l, room).view.Waiting; n != 3 {
		t.Errorf("%d wait", n)
	}
	if v := status(t, l, room, old.Token); v.Status != Left || !v.Moved {
		t.Errorf("the old browser is told %+v", v)
	}
	if v := status(t, l, room, got.Token); v.Status != Waiting || v.Position != 2 || v.Moved {
		t.Errorf("the new one is told %+v", v)
	}
	// The lost reply, and what people type.
	for _, typed := range []string{made.Code, strings.ToLower(made.Code), " " + strings.ReplaceAll(made.Code, "-", " ") + "\n"} {
		if v := move(t, l, room, "laptop", typed); v.Token != got.Token || v.Position != 2 {
			t.Errorf("again by %q: %+v", typed, v)
		}
	}
	if _, err := l.Move(t.Context(), room, Fan{ID: "thief"}, made.Code); !errors.Is(err, ErrMoveCode) {
		t.Errorf("a second browser: %v", err)
	}
	// The place cookie is lost and the browser joins: the place, and on whom it counts.
	if v := join(t, l, room, "laptop"); v.Created || v.PlaceID != got.PlaceID || customerOf(t, l, room, v.Token) != customerOf(t, l, room, old.Token) {
		t.Errorf("%+v", v)
	}
	if l.Owner(room, got.Token, []string{"laptop"}) != "" { // then the join goes by the token, which knows the customer
		t.Error("the moved place is taken for one the browser's id makes")
	}
	// The old browser starts at the tail, with a place of its own and no mark of the old one.
	if v, err := l.Join(t.Context(), room, Fan{ID: "phone", Bound: true, Former: old.Token}); err != nil || !v.Created || v.Position != 4 {
		t.Errorf("%+v, %v", v, err)
	} else if s := status(t, l, room, v.Token); s.Moved || s.Status != Waiting {
		t.Errorf("%+v", s)
	}
	if v := status(t, l, room, old.Token); v.Status == Waiting && v.Position < 4 {
		t.Errorf("the old token is worth %+v", v)
	}
}

func TestACodeServesOneBrowser(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	old := join(t, l, room, "old")
	code := codeOf(t, l, room, old.Token, false)
	var won atomic.Int64
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range 40 {
		wg.Go(func() {
			<-gate
			_, err := l.Move(t.Context(), room, Fan{ID: fmt.Sprint("rival", i)}, code)
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, ErrMoveCode):
				t.Error(err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d browsers have the place", won.Load())
	}
	if n := refresh(t, l, room).view.Waiting; n != 1 {
		t.Errorf("%d wait", n)
	}
}

func TestBadCodes(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room, other := openRoom(t, l, 0, 10), openRoom(t, l, 0, 10)
	old := join(t, l, room, "old")
	replaced := codeOf(t, l, room, old.Token, false)
	code := codeOf(t, l, room, old.Token, false)
	for name, try := range map[string]struct{ room, code string }{
		"empty": {room, ""}, "short": {room, code[:9]}, "long": {room, code + "A"}, "a megabyte": {room, strings.Repeat("A", 1<<20)},
		"letters it has not": {room, "UUUUU-UUUUU"}, "made up": {room, "00000-00000"}, "replaced": {room, replaced}, "another room": {other, code},
	} {
		if _, err := l.Move(t.Context(), try.room, Fan{ID: "new"}, try.code); !errors.Is(err, ErrMoveCode) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.Move(t.Context(), "nowhere", Fan{ID: "new"}, code); !errors.Is(err, ErrUnknownRoom) {
		t.Errorf("%v", err)
	}
	if _, err := l.NewMoveCode(t.Context(), room, "x", false); !errors.Is(err, ErrBadToken) {
		t.Errorf("%v", err)
	}
	// Run out: the field says when.
	key := l.own(room).keys[kMoves]
	fields, err := rdb.HGetAll(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	for f, v := range fields {
		_, rest, _ := strings.Cut(v, "|")
		if err := rdb.HSet(t.Context(), key, f, "1|"+rest).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Move(t.Context(), room, Fan{ID: "new"}, code); !errors.Is(err, ErrMoveCode) {
		t.Errorf("run out: %v", err)
	}
	if v := status(t, l, room, old.Token); v.Status != Waiting || v.Position != 1 {
		t.Errorf("the place: %+v", v)
	}
	// What has run out is forgotten as new codes are made.
	codeOf(t, l, room, old.Token, false)
	if n := rdb.HLen(t.Context(), key).Val(); n != 2 {
		t.Errorf("%d fields are kept", n)
	}
}

func TestACalledPlaceMovesWithItsCall(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 1)
	inside := join(t, l, room, "inside")
	step(t, l, room)
	claim(t, l, room, inside.Token)
	if _, err := l.NewMoveCode(t.Context(), room, inside.Token, false); !errors.Is(err, ErrAdmitted) {
		t.Errorf("a code of an admitted place: %v", err)
	}
	set(t, l, room, func(s *Settings) { s.Cap = 2 })
	old := join(t, l, room, "old")
	report(t, l, room)
	step(t, l, room)
	was := status(t, l, room, old.Token)
	if was.Status != Called {
		t.Fatalf("%+v", was)
	}
	got := move(t, l, room, "new", codeOf(t, l, room, old.Token, false))
	if got.Status != Called || !got.CalledUntil.Equal(was.CalledUntil) {
		t.Errorf("%+v, want the call of %+v", got, was)
	}
	if _, err := l.Claim(t.Context(), room, old.Token); !errors.Is(err, ErrExpired) {
		t.Errorf("the old browser claims: %v", err)
	}
	// Standing by, too: nobody is free to be admitted.
	set(t, l, room, func(s *Settings) { s.Cap = 1 })
	if _, err := l.Claim(t.Context(), room, got.Token); !isStandBy(err) {
		t.Fatalf("%v", err)
	}
	code := codeOf(t, l, room, got.Token, false)
	third := move(t, l, room, "third", code)
	if third.Status != Called || !third.StandingBy {
		t.Errorf("%+v", third)
	}
	set(t, l, room, func(s *Settings) { s.Cap = 5 })
	step(t, l, room)
	eventually(t, 5*time.Second, "admitted by standing by", func() bool {
		a, err := l.Claim(t.Context(), room, third.Token)
		return err == nil && a.Customer == customerOf(t, l, room, old.Token)
	})
	if _, err := l.Move(t.Context(), room, Fan{ID: "third", Bound: true}, code); !errors.Is(err, ErrAdmitted) {
		t.Errorf("the used code, once inside: %v", err)
	}
	// Neither into a browser that is inside.
	late := join(t, l, room, "late")
	if _, err := l.Move(t.Context(), room, Fan{ID: "third", Bound: true}, codeOf(t, l, room, late.Token, false)); !errors.Is(err, ErrAdmitted) {
		t.Errorf("into a browser that is inside: %v", err)
	}
	if v := status(t, l, room, late.Token); v.Status != Called && v.Status != Waiting {
		t.Errorf("%+v", v)
	}
}

func TestABrowserWithAPlaceKeepsTheMovedOne(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	early := join(t, l, room, "early")
	own := join(t, l, room, "own")
	join(t, l, room, "last")
	got := move(t, l, room, "own", codeOf(t, l, room, early.Token, false))
	if got.Position != 1 || got.PlaceID != own.PlaceID || got.Token == own.Token {
		t.Errorf("%+v", got)
	}
	b := refresh(t, l, room)
	if b.view.Waiting != 2 {
		t.Errorf("%d wait", b.view.Waiting)
	}
	// The token of before leads to where the fan is, and to the customer.
	if v := status(t, l, room, own.Token); v.Position != 1 || customerOf(t, l, room, v.Token) != customerOf(t, l, room, early.Token) {
		t.Errorf("%+v", v)
	}
	// Left meanwhile, or missed: nothing to move.
	code := codeOf(t, l, room, got.Token, false)
	if err := l.Leave(t.Context(), room, got.Token); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Move(t.Context(), room, Fan{ID: "x"}, code); !errors.Is(err, ErrExpired) {
		t.Errorf("%v", err)
	}
	if _, err := l.NewMoveCode(t.Context(), room, got.Token, false); !errors.Is(err, ErrExpired) {
		t.Errorf("%v", err)
	}
}

func TestAKeptCodeServesAgainAndAgain(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	v := join(t, l, room, "visit-0")
	first := customerOf(t, l, room, v.Token)
	code := codeOf(t, l, room, v.Token, true)
	once := codeOf(t, l, room, v.Token, false) // one of each kind
	join(t, l, room, "behind")
	for i := range 4 {
		last := v
		v = move(t, l, room, fmt.Sprint("visit-", i+1), code)
		if v.Position != 1 || customerOf(t, l, room, v.Token) != first {
			t.Fatalf("visit %d: %+v", i+1, v)
		}
		if s := status(t, l, room, last.Token); s.Status != Left || !s.Moved {
			t.Errorf("visit %d still has it: %+v", i, s)
		}
		if again := move(t, l, room, fmt.Sprint("visit-", i+1), code); again.Token != v.Token {
			t.Errorf("again: %+v", again)
		}
	}
	if _, err := l.Move(t.Context(), room, Fan{ID: "x"}, once); !errors.Is(err, ErrMoveCode) {
		t.Errorf("a code of the place of before: %v", err)
	}
	// Also inside: a browser that keeps nothing may lose the reply with the pass.
	set(t, l, room, func(s *Settings) { s.RatePerMinute = 60_000 })
	report(t, l, room)
	step(t, l, room)
	in := claim(t, l, room, v.Token)
	if a := move(t, l, room, "visit-9", code); a.Status != Admitted || claim(t, l, room, a.Token).JTI != in.JTI {
		t.Errorf("inside: %+v", a)
	}
	v = join(t, l, room, "another")
	code = codeOf(t, l, room, v.Token, true)
	set(t, l, room, func(s *Settings) { s.RatePerMinute = 0 })
	// It ends where the place moves by another code: the old device loses it.
	moved := move(t, l, room, "laptop", codeOf(t, l, room, v.Token, false))
	if _, err := l.Move(t.Context(), room, Fan{ID: "y"}, code); !errors.Is(err, ErrMoveCode) {
		t.Errorf("the kept code takes the place back: %v", err)
	}
	if s := status(t, l, room, moved.Token); s.Status != Waiting && s.Status != Called {
		t.Errorf("%+v", s)
	}
	set(t, l, room, func(s *Settings) { s.State = "closed" })
	if _, err := l.NewMoveCode(t.Context(), room, moved.Token, true); !errors.Is(err, ErrRoomClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestAKnownCustomersCodeAddsADevice(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	phone, err := l.Join(t.Context(), room, Fan{ID: "phone", Bound: true, Known: alice})
	if err != nil {
		t.Fatal(err)
	}
	join(t, l, room, "tv")
	code := codeOf(t, l, room, phone.Token, false)
	tv := move(t, l, room, "tv", code)
	if tv.PlaceID != phone.PlaceID || !l.IsKnown(room, tv.Token) || tv.Position != 1 {
		t.Errorf("%+v", tv)
	}
	if again := move(t, l, room, "tv", code); again.Token != tv.Token {
		t.Errorf("again: %+v", again)
	}
	if _, err := l.Move(t.Context(), room, Fan{ID: "thief"}, code); !errors.Is(err, ErrMoveCode) {
		t.Errorf("%v", err)
	}
	if v := status(t, l, room, phone.Token); v.Status != Waiting || v.Moved {
		t.Errorf("%+v", v)
	}
	if n := refresh(t, l, room).view.Waiting; n != 1 {
		t.Errorf("%d wait", n)
	}
}

func TestAPlaceOfAGatheringMovesAndIsDrawnAsTheNewOne(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	d := gatheringRoom(t, l)
	for i := range 20 {
		join(t, l, d.Room, fmt.Sprint("fan", i))
	}
	old := join(t, l, d.Room, "phone")
	pending := codeOf(t, l, d.Room, join(t, l, d.Room, "fan3").Token, false)
	got := move(t, l, d.Room, "laptop", codeOf(t, l, d.Room, old.Token, false))
	if !got.Undrawn {
		t.Errorf("%+v", got)
	}
	d.change(t, func(s *Settings) { s.State, s.Draw.Seed = "drawing", d.seed() })
	if _, err := l.Move(t.Context(), d.Room, Fan{ID: "tablet"}, pending); !errors.Is(err, ErrStale) {
		t.Errorf("while it is drawn: %v", err)
	}
	d.drawOn(t, l)
	d.finish(t)
	d.change(t, func(s *Settings) { s.State, s.RatePerMinute = "open", 0 })
	refresh(t, l, d.Room)
	drawn := status(t, l, d.Room, got.Token)
	if drawn.Undrawn || drawn.Position < 1 || drawn.Position > 21 {
		t.Fatalf("%+v", drawn)
	}
	if v := status(t, l, d.Room, old.Token); v.Status != Left || !v.Moved {
		t.Errorf("the old browser is told %+v", v)
	}
	// After the draw the number moves along.
	moved := move(t, l, d.Room, "tablet", codeOf(t, l, d.Room, drawn.Token, false))
	refresh(t, l, d.Room)
	if v := status(t, l, d.Room, moved.Token); v.Position != drawn.Position || v.Status != Waiting {
		t.Errorf("%+v, was %d", v, drawn.Position)
	}
	if v := move(t, l, d.Room, "late", pending); v.Status != Waiting {
		t.Errorf("the code of before the draw: %+v", v)
	}
}

func TestAMoveTwiceByALostReplyAndAcrossSecrets(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 10)
	old := join(t, l, room, "old")
	code := codeOf(t, l, room, old.Token, false)
	rotated := newLine(t, rdb, func(o *Options) { o.PlaceSecrets = [][]byte{[]byte(strings.Repeat("n", 32)), testSecret} })
	v, err := rotated.Move(t.Context(), room, Fan{ID: "new", Bound: true}, code)
	if err != nil || v.Position != 1 {
		t.Fatalf("after a rotation: %+v, %v", v, err)
	}
	fields, err := rdb.HGetAll(t.Context(), l.own(room).keys[kMoves]).Result()
	if err != nil {
		t.Fatal(err)
	}
	for f, v := range fields {
		if plain := strings.ReplaceAll(code, "-", ""); strings.Contains(f+v, plain) {
			t.Errorf("Redis knows the code: %q %q", f, v)
		}
	}
}

func TestARevokedFanMovesNothing(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	old := join(t, l, room, "old")
	code := codeOf(t, l, room, old.Token, false)
	if err := l.PutRevoked(t.Context(), room, Revoked{Version: 1, Customers: map[string]bool{customerOf(t, l, room, old.Token): true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.NewMoveCode(t.Context(), room, old.Token, false); !errors.Is(err, ErrRevoked) {
		t.Errorf("%v", err)
	}
	if _, err := l.Move(t.Context(), room, Fan{ID: "new"}, code); !errors.Is(err, ErrRevoked) && !errors.Is(err, ErrExpired) {
		t.Errorf("moved away from a revocation: %v", err)
	}
	if n := refresh(t, l, room).view.Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
}

// After a loss the codes are gone; no place is, and nobody has two.
func TestAMovedPlaceSurvivesAnEmptiedRedis(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 10)
	join(t, l, room, "first")
	old := join(t, l, room, "old")
	got := move(t, l, room, "new", codeOf(t, l, room, old.Token, false))
	refresh(t, l, room)
	keys := l.own(room).keys
	if err := rdb.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := l.PutSettings(t.Context(), Settings{Room: room, Title: "Hall", Mode: "fifo", State: "open", Cap: 10, Run: 1, Version: 1}); err != nil {
		t.Fatal(err)
	}
	v, err := l.Status(t.Context(), room, got.Token, 0)
	if err != nil || v.Status != Waiting || v.PlaceID != got.PlaceID {
		t.Fatalf("%+v, %v", v, err)
	}
	if customerOf(t, l, room, v.Token) != customerOf(t, l, room, old.Token) {
		t.Error("the customer was forgotten")
	}
	if code := codeOf(t, l, room, v.Token, false); code == "" {
		t.Error("no new code")
	}
}

// Whoever claims with the token of a place of their own, given up for the moved one,
// is admitted as the customer whose place it is: limits do not begin anew.
func TestAnOlderTokenOfTheNewBrowserCountsOnTheCustomer(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10)
	early := join(t, l, room, "early")
	own := join(t, l, room, "own")
	move(t, l, room, "own", codeOf(t, l, room, early.Token, false))
	step(t, l, room)
	if a := claim(t, l, room, own.Token); a.Customer != customerOf(t, l, room, early.Token) {
		t.Errorf("admitted as %s", a.Customer)
	}
}
