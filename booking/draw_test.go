package booking_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"usher/booking"
	"usher/booking/bookingtest"
)

// aDrawRoom is a pool and its one room of mode draw.
func aDrawRoom(t *testing.T, state string) (*pgxpool.Pool, *booking.Rooms) {
	t.Helper()
	pool, rooms := aRoom(t, state)
	if _, err := pool.Exec(context.Background(), `UPDATE room SET mode = 'draw'`); err != nil {
		t.Fatal(err)
	}
	return pool, rooms
}

func drawResult(run, places int) booking.DrawResult {
	d := booking.DrawResult{Run: run, Cut: 1_790_000_000_000_000, Digest: sha256.Sum256([]byte{byte(places)})}
	for i := range places {
		m := sha256.Sum256([]byte(fmt.Sprint(i)))
		d.Entries = append(d.Entries, m[:16]...)
	}
	return d
}

// Many booking processes report the same drawing: the room opens once, and the list
// is kept whole.
func TestADrawingIsFinishedOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, rooms := aDrawRoom(t, "gathering")
	early := drawResult(1, 10)
	var refused *booking.RoomTransitionError
	if _, err := rooms.FinishDraw(ctx, "hall", early); !errors.As(err, &refused) {
		t.Fatalf("finished while it gathers: %v", err)
	}
	draw, _ := booking.RoomVerb("draw")
	before, err := rooms.Change(ctx, "ann", "hall", draw)
	if err != nil {
		t.Fatal(err)
	}
	d := drawResult(1, 250_007) // three rows
	old := d
	old.Run = 0
	if _, err := rooms.FinishDraw(ctx, "hall", old); !errors.Is(err, booking.ErrDrawOutdated) {
		t.Errorf("of another run: %v", err)
	}
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			<-gate
			r, err := rooms.FinishDraw(ctx, "hall", d)
			if err != nil || r.State != "open" || r.Draw.Digest != d.Digest || r.Draw.Entries != 250_007 || r.Draw.Cut != d.Cut ||
				r.Draw.At.IsZero() || r.Version <= before.Version {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if _, err := rooms.FinishDraw(ctx, "hall", early); !errors.Is(err, booking.ErrDrawOutdated) {
		t.Errorf("another result after it: %v", err)
	}
	if got, err := rooms.DrawEntries(ctx, "hall", 1); err != nil || !bytes.Equal(got, d.Entries) {
		t.Errorf("the list has %d bytes of %d, %v", len(got), len(d.Entries), err)
	}
	rows, _ := pool.Query(ctx, `SELECT actor || ' ' || (detail->'before'->>'state') || '>' || (detail->'after'->>'state') FROM audit_log ORDER BY audit_id`)
	log, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if got := strings.Join(log, "; "); err != nil || got != "ann gathering>drawing; line drawing>open" {
		t.Errorf("audit log %q, %v", got, err)
	}
	if _, err := rooms.FinishDraw(ctx, "nowhere", d); !errors.Is(err, booking.ErrUnknownRoom) {
		t.Errorf("no room: %v", err)
	}
}

// The seed leaves the row by nobody's print, and a reset makes a new one.
func TestTheSeedOfADraw(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, rooms := aDrawRoom(t, "scheduled")
	r, err := rooms.Get(ctx, "hall")
	if err != nil || r.Draw.Seed == (booking.DrawSeed{}) {
		t.Fatalf("no seed: %v", err)
	}
	seed := r.Draw.Seed
	j, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprintf("%v", r), fmt.Sprintf("%+v", r), fmt.Sprintf("%#v", r), fmt.Sprintf("%x", r), fmt.Sprintf("%x", seed), fmt.Sprint(seed), string(j),
	} {
		if strings.Contains(text, fmt.Sprintf("%x", seed[:])) || strings.Contains(text, fmt.Sprintf("%d", seed[:])) || !strings.Contains(text, "(secret)") {
			t.Errorf("it prints: %s", text)
		}
	}
	for _, verb := range []string{"gather", "draw"} {
		c, _ := booking.RoomVerb(verb)
		if _, err := rooms.Change(ctx, "ann", "hall", c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rooms.FinishDraw(ctx, "hall", drawResult(1, 3)); err != nil {
		t.Fatal(err)
	}
	var log string
	if err := pool.QueryRow(ctx, `SELECT string_agg(detail::text, '') FROM audit_log`).Scan(&log); err != nil || strings.Contains(log, fmt.Sprintf("%x", seed[:])) {
		t.Errorf("the audit log: %s, %v", log, err)
	}
	if after, err := rooms.Get(ctx, "hall"); err != nil || after.Draw.Seed != seed {
		t.Errorf("the seed changed without a reset, %v", err)
	}
	if _, err := pool.Exec(ctx, `UPDATE room SET run = run + 1, state = 'scheduled'`); err != nil {
		t.Fatal(err)
	}
	after, err := rooms.Get(ctx, "hall")
	if err != nil || after.Draw.Seed == seed || !after.Draw.At.IsZero() || after.Draw.Entries != 0 || after.Draw.Digest != [32]byte{} || after.Draw.PublicValue != "" {
		t.Errorf("after a reset: %+v, %v", after.Draw, err)
	}
	if entries, err := rooms.DrawEntries(ctx, "hall", 2); err != nil || len(entries) != 0 {
		t.Errorf("the list of a run that was not drawn: %d, %v", len(entries), err)
	}
	// No two rooms have the same one.
	if _, err := pool.Exec(ctx, `INSERT INTO room (room_id, title, rate_per_minute, cap) SELECT 'r' || n, 'T', 1, 1 FROM generate_series(1, 200) n`); err != nil {
		t.Fatal(err)
	}
	var seeds int
	if err := pool.QueryRow(ctx, `SELECT count(DISTINCT draw_seed) FROM room`).Scan(&seeds); err != nil || seeds != 201 {
		t.Errorf("%d seeds for 201 rooms, %v", seeds, err)
	}
}

func TestThePublicValueIsSetBeforeTheDrawingOnly(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, rooms := aDrawRoom(t, "scheduled")
	set := func(v string) error {
		r, err := rooms.Change(ctx, "ann", "hall", booking.RoomChange{PublicValue: &v})
		if err == nil && r.Draw.PublicValue != strings.TrimSpace(v) {
			t.Errorf("%q is kept as %q", v, r.Draw.PublicValue)
		}
		return err
	}
	for state, may := range map[string]bool{"scheduled": true, "gathering": true, "closed": true, "drawing": false} {
		if _, err := pool.Exec(ctx, `UPDATE room SET state = $1`, state); err != nil {
			t.Fatal(err)
		}
		var refused *booking.PublicValueError
		if err := set(" 1 2 3 " + state); may != (err == nil) || !may && !errors.As(err, &refused) {
			t.Errorf("in state %s: %v", state, err)
		}
	}
	if _, err := pool.Exec(ctx, `UPDATE room SET state = 'gathering'`); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{strings.Repeat("x", booking.MaxPublicValue+1), "a\nb", "a\x00", "\xff"} {
		if err := set(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if err := set(strings.Repeat("é", booking.MaxPublicValue)); err != nil {
		t.Error(err)
	}
	if _, err := pool.Exec(ctx, `UPDATE room SET mode = 'fifo'`); err != nil {
		t.Fatal(err)
	}
	if err := set("1"); err == nil {
		t.Error("a fifo room takes a public value")
	}
}

// A room of mode draw gathers, is drawn and opens by the database's clock, and
// makes up for a schedule that nobody looked at.
func TestADrawnRoomsScheduleIsKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := bookingtest.Pool(t)
	rooms := booking.NewRooms(pool)
	for id, row := range map[string][3]string{ // state, gathers, opens: from now
		"waits": {"scheduled", "1 hour", "2 hours"}, "gathers": {"scheduled", "-1 second", "1 hour"}, "gathers-late": {"scheduled", "-1 day", "1 minute"},
		"draws": {"gathering", "-1 hour", "-1 second"}, "slept-through": {"scheduled", "-2 hours", "-1 hour"}, "closed": {"closed", "-2 hours", "-1 hour"},
		"drawing": {"drawing", "-2 hours", "-1 hour"},
	} {
		if _, err := pool.Exec(ctx, `INSERT INTO room (room_id, title, mode, state, rate_per_minute, cap, gathers_at, opens_at)
			VALUES ($1, 'T', 'draw', $2, 60, 10, clock_timestamp() + $3::text::interval, clock_timestamp() + $4::text::interval)`, id, row[0], row[1], row[2]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `INSERT INTO room (room_id, title, mode, state, rate_per_minute, cap, gathers_at, opens_at)
		VALUES ('drawn-already', 'T', 'draw', 'gathering', 1, 1, now() - '2 hours'::interval, now() - '1 hour'::interval)`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `UPDATE room SET draw_digest = draw_seed, draw_entries = 0, draw_cut = 0, drawn_at = now() WHERE room_id = 'drawn-already'`); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		steps, err := rooms.OpenDue(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			got = append(got, s.ID+" "+s.From+">"+s.To)
		}
	}
	want := "drawn-already gathering>open; draws gathering>drawing; gathers scheduled>gathering; gathers-late scheduled>gathering; slept-through scheduled>drawing"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	for _, bad := range []string{`gathers_at = opens_at`, `draw_digest = draw_seed`, `draw_seed = 'x'`, `gathers_at = opens_at + '1 s'`} {
		if _, err := pool.Exec(ctx, `UPDATE room SET `+bad+` WHERE room_id = 'waits'`); err == nil {
			t.Errorf("the table takes %s", bad)
		}
	}
}

// The machine of roomstates.go, drawn once more as what an operator may rely on:
// whatever is done in whatever order, a room of mode draw opens first by its drawing,
// is drawn once, and each change of state is in the audit log.
func TestRoomStatesAgreeWithAModel(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool, rooms := aDrawRoom(t, "scheduled")
	next := map[string]string{ // state+verb → state; whatever is not here is refused
		"scheduled gather": "gathering", "scheduled close": "closed",
		"gathering draw": "drawing", "gathering close": "closed",
		"drawing finish": "open",
		"open pause":     "paused", "open close": "closed",
		"paused open": "open", "paused resume": "open", "paused close": "closed",
	}
	to := map[string]string{"gather": "gathering", "draw": "drawing", "open": "open", "resume": "open", "pause": "paused", "close": "closed"}
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]string{"draw", "fifo"}).Draw(rt, "mode")
		if _, err := pool.Exec(ctx, `UPDATE room SET run = run + 1, state = 'scheduled', mode = $1`, mode); err != nil {
			rt.Fatal(err)
		}
		if _, err := pool.Exec(ctx, `TRUNCATE audit_log`); err != nil {
			rt.Fatal(err)
		}
		r, err := rooms.Get(ctx, "hall")
		if err != nil {
			rt.Fatal(err)
		}
		state, drawn, moves := "scheduled", false, 0
		rt.Repeat(map[string]func(*rapid.T){
			"verb": func(rt *rapid.T) {
				verb := rapid.SampledFrom([]string{"gather", "draw", "open", "pause", "resume", "close"}).Draw(rt, "verb")
				want, may := next[state+" "+verb]
				free := mode == "fifo" || drawn // nothing has to be drawn (any more)
				switch {
				case to[verb] == state && (verb != "resume" || state == "open"):
					want, may = state, true
				case free && verb == "open" && strings.Contains("scheduled gathering closed", state):
					want, may = "open", true
				case free && verb == "draw":
					may = false
				case !free && verb == "gather" && state == "closed":
					want, may = "gathering", true
				}
				change, _ := booking.RoomVerb(verb)
				got, err := rooms.Change(ctx, "ann", "hall", change)
				var refused *booking.RoomTransitionError
				switch {
				case may && (err != nil || got.State != want):
					rt.Fatalf("%s from %s (mode %s, drawn %v): %s, %v, want %s", verb, state, mode, drawn, got.State, err, want)
				case !may && !errors.As(err, &refused):
					rt.Fatalf("%s from %s (mode %s, drawn %v): %s, %v, want a refusal", verb, state, mode, drawn, got.State, err)
				case may && want != state:
					state, moves = want, moves+1
				}
			},
			"finish": func(rt *rapid.T) {
				got, err := rooms.FinishDraw(ctx, "hall", drawResult(r.Run, 2))
				switch {
				case drawn:
					if err != nil || got.State != state {
						rt.Fatalf("finished again: %+v, %v", got, err)
					}
				case (state == "drawing") != (err == nil):
					rt.Fatalf("finished from %s: %v", state, err)
				case err == nil:
					state, drawn, moves = "open", true, moves+1
				}
			},
			"": func(rt *rapid.T) {
				got, err := rooms.Get(ctx, "hall")
				if err != nil || got.State != state || got.Draw.At.IsZero() == drawn {
					rt.Fatalf("it is %s (drawn %v), should be %s (%v), %v", got.State, !got.Draw.At.IsZero(), state, drawn, err)
				}
				if mode == "draw" && !drawn && (state == "open" || state == "paused") {
					rt.Fatalf("%s without a drawing", state)
				}
				var logged int
				if err := pool.QueryRow(ctx, `SELECT count(*) FROM audit_log`).Scan(&logged); err != nil || logged != moves {
					rt.Fatalf("%d moves, %d in the audit log, %v", moves, logged, err)
				}
			},
		})
	})
}
