package queue

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"usher/internal/devstack/devstacktest"
)

// drawRoom is a room of mode draw together with what Postgres would know of it.
type drawRoom struct {
	Settings
	l *Line
}

func gatheringRoom(t testing.TB, l *Line) *drawRoom {
	t.Helper()
	name := devstacktest.Name("draw")
	seed := sha256.Sum256([]byte(name))
	d := &drawRoom{l: l, Settings: Settings{
		Room: name, Title: "Draw", Mode: "draw", State: "gathering", RatePerMinute: 600, Cap: 10_000, Run: 1, Version: 1,
		Draw: DrawSettings{Commitment: DrawCommitment(name, 1, seed[:]), PublicValue: "5 12 23 31 40 44"},
	}}
	d.ship(t)
	return d
}

func (d *drawRoom) seed() []byte { s := sha256.Sum256([]byte(d.Room)); return s[:] }

func (d *drawRoom) ship(t testing.TB) {
	t.Helper()
	if err := d.l.PutSettings(t.Context(), d.Settings); err != nil {
		t.Fatal(err)
	}
	report(t, d.l, d.Room)
}

// change ships the next version.
func (d *drawRoom) change(t testing.TB, f func(*Settings)) {
	t.Helper()
	d.Version++
	f(&d.Settings)
	d.ship(t)
}

func (d *drawRoom) draw(t testing.TB) {
	t.Helper()
	d.change(t, func(s *Settings) { s.State, s.Draw.Seed = "drawing", d.seed() })
}

// finish is what the bridge does with the result.
func (d *drawRoom) finish(t testing.TB) DrawResult {
	t.Helper()
	res, err := d.l.Drawn(t.Context(), d.Room)
	if err != nil {
		t.Fatal(err)
	}
	d.change(t, func(s *Settings) {
		s.State = "open"
		s.Draw.Digest, s.Draw.Entries, s.Draw.Cut, s.Draw.At = res.Digest, len(res.Entries)/entryBytes, res.Cut, time.Now()
	})
	return res
}

func (d *drawRoom) drawOn(t testing.TB, l *Line) {
	t.Helper()
	r := l.own(d.Room)
	refresh(t, l, d.Room)
	for r.board.Load().draw.pending {
		if err := l.drawOn(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// order recomputes a draw from what is published, written apart from draw.go: the
// places' ids in the order they are called.
func order(t testing.TB, v *DrawView, published string) []string {
	t.Helper()
	seed, err := hex.DecodeString(v.Seed)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(published))
	if hex.EncodeToString(sum[:]) != v.Digest {
		t.Fatalf("the digest of the list is %x, published is %s", sum, v.Digest)
	}
	key := hmac.New(sha256.New, seed)
	key.Write(append(sum[:], v.PublicValue...))
	ids := strings.Fields(published)
	score := make(map[string]uint64, len(ids))
	for _, id := range ids {
		raw, err := hex.DecodeString(id)
		if err != nil || len(raw) != 16 {
			t.Fatalf("%q is no place", id)
		}
		m := hmac.New(sha256.New, key.Sum(nil))
		m.Write(raw)
		score[id] = binary.BigEndian.Uint64(m.Sum(nil)) >> 14
	}
	slices.SortFunc(ids, func(a, b string) int {
		if score[a] != score[b] {
			if score[a] < score[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return ids
}

func publishedList(t testing.TB, l *Line, room string) string {
	t.Helper()
	var b strings.Builder
	for from := 0; ; {
		part, total, err := l.Entries(t.Context(), room, from, 3000)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteEntries(&b, part); err != nil {
			t.Fatal(err)
		}
		if from += len(part) / entryBytes; from >= total {
			return b.String()
		}
	}
}

// A draw of 10,000, made by two edges at once of which one stops in the middle:
// whoever reads what is published finds every number; who came late is behind all.
func TestQ18_EveryNumberFollowsFromWhatIsPublished(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	a, b := newLine(t, rdb), newLine(t, rdb)
	d := gatheringRoom(t, a)
	const fans = 10_000
	tokens := crowd(t, a, d.Room, fans)
	if v := join(t, a, d.Room, "early"); v.Status != Waiting || v.Position != 0 || v.Ahead != 0 || v.ETA != nil {
		t.Errorf("before the draw a place is told %+v", v)
	}
	refresh(t, a, d.Room)
	refresh(t, b, d.Room)
	if v := status(t, b, d.Room, tokens[17]); v.Position != 0 || v.Token != tokens[17] || v.PollAfter < 15*time.Second {
		t.Errorf("before the draw a place is told %+v", v)
	}
	if _, err := a.Drawn(t.Context(), d.Room); !errors.Is(err, ErrNotDrawn) {
		t.Errorf("drawn while it gathers: %v", err)
	}
	d.draw(t)

	// Two edges at once; the second one is stopped somewhere in the middle.
	ctx, stop := context.WithCancel(t.Context())
	refresh(t, b, d.Room)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_ = b.drawOn(ctx, b.own(d.Room))
		}
	})
	eventually(t, time.Minute, "the drawing gives out numbers", func() bool {
		st, _, err := a.drawState(t.Context(), a.own(d.Room))
		return err == nil && st["draw"] == "scores"
	})
	late := join(t, a, d.Room, "late") // while it is drawn
	stop()
	d.drawOn(t, a)
	wg.Wait()
	if v := status(t, a, d.Room, tokens[17]); v.Status != Waiting || v.Position != 0 {
		t.Errorf("while it is drawn a place is told %+v", v)
	}
	res := d.finish(t)
	later := join(t, a, d.Room, "later")
	refresh(t, a, d.Room)
	refresh(t, b, d.Room)

	view, err := b.Room(d.Room)
	if err != nil {
		t.Fatal(err)
	}
	if DrawCommitment(d.Room, view.Draw.Run, d.seed()) != view.Draw.Commitment || view.Draw.Seed != hex.EncodeToString(d.seed()) {
		t.Errorf("the seed is not the one committed to: %+v", view.Draw)
	}
	want := order(t, view.Draw, publishedList(t, b, d.Room))
	if len(want) != fans+1 || len(res.Entries) != (fans+1)*entryBytes {
		t.Fatalf("%d entries published, %d reported, %d gathered", len(want), len(res.Entries)/entryBytes, fans+1)
	}
	inLine, err := rdb.ZRange(t.Context(), a.own(d.Room).keys[kWait], 0, -1).Result()
	if err != nil || len(inLine) != fans+3 {
		t.Fatalf("%d in line, %v", len(inLine), err)
	}
	rank := map[string]int{}
	for i, m := range inLine {
		rank[hex.EncodeToString([]byte(m))] = i + 1
		if i < len(want) && want[i] != hex.EncodeToString([]byte(m)) {
			t.Fatalf("%x stands at %d, recomputed is %s", m, i+1, want[i])
		}
	}
	if rank[late.PlaceID] != fans+2 || rank[later.PlaceID] != fans+3 {
		t.Errorf("who came late stands at %d and %d of %d", rank[late.PlaceID], rank[later.PlaceID], len(inLine))
	}
	// The page's old token is told the drawn number from memory, and renewed.
	for i := 0; i < fans; i += 97 {
		v := status(t, b, d.Room, tokens[i])
		got, want := v.Position, rank[v.PlaceID]
		if want <= exactRanks && got != want || math.Abs(float64(got-want)) > 400 { // interpolated behind the head
			t.Errorf("place %s is told %d, stands at %d", v.PlaceID, got, want)
		}
		if again := status(t, b, d.Room, v.Token); v.Token == tokens[i] || again.Token != v.Token || again.Position != v.Position {
			t.Errorf("the token of before the draw was not renewed for good")
		}
	}
	if v := join(t, a, d.Room, fmt.Sprintf("%s-%d", d.Room, 5)); v.Created || v.Position != rank[v.PlaceID] {
		t.Errorf("joining again: %+v, stands at %d", v, rank[v.PlaceID])
	}
}

// The first to arrive is as likely to be last as anybody else.
func TestQ18_TheFirstArrivalHasNoAdvantage(t *testing.T) {
	t.Parallel()
	const fans, draws, cells = 40, 8000, 10
	var entries []byte
	for i := range fans {
		m := sha256.Sum256([]byte{byte(i)})
		entries = append(entries, m[:16]...)
	}
	digest := EntriesDigest(entries)
	var counts [cells]float64
	for i := range draws {
		seed := sha256.Sum256(binary.BigEndian.AppendUint32([]byte("seed"), uint32(i)))
		for rank, r := range NewDrawer(seed[:], digest, "").Rank(entries) {
			if bytes.Equal(r.Place[:], entries[:16]) {
				counts[rank*cells/fans]++
			}
		}
	}
	chi, each := 0.0, float64(draws)/cells
	for _, n := range counts {
		chi += (n - each) * (n - each) / each
	}
	if chi > 27.9 { // χ² with 9 degrees of freedom: exceeded once in a thousand
		t.Errorf("χ² = %.1f over %v", chi, counts)
	}
}

func TestDrawByKnownValues(t *testing.T) {
	t.Parallel()
	seed := bytes.Repeat([]byte{7}, 32)
	// printf 'usher-draw-1\nhall\n3\n0707…07\n' | sha256sum
	want := sha256.Sum256([]byte("usher-draw-1\nhall\n3\n" + strings.Repeat("07", 32) + "\n"))
	if got := DrawCommitment("hall", 3, seed); got != hex.EncodeToString(want[:]) {
		t.Errorf("commitment %s", got)
	}
	for _, other := range []string{DrawCommitment("hall", 4, seed), DrawCommitment("hal", 3, seed), DrawCommitment("hall", 3, seed[1:])} {
		if other == hex.EncodeToString(want[:]) {
			t.Error("another draw has the same commitment")
		}
	}
	entries := append(bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 16)...)
	digest := EntriesDigest(entries)
	if digest != sha256.Sum256([]byte(strings.Repeat("01", 16)+"\n"+strings.Repeat("02", 16)+"\n")) {
		t.Errorf("digest %x", digest)
	}
	a, b := NewDrawer(seed, digest, "x"), NewDrawer(seed, digest, "y")
	if a.Score([16]byte(entries)) == b.Score([16]byte(entries)) {
		t.Error("the public value changes nothing")
	}
	for i := range 1000 {
		if s := a.Score([16]byte(binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i)))); s < 0 || s >= drawnScores {
			t.Fatalf("score %d", s)
		}
	}
}
