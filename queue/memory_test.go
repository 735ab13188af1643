package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A memory gives each mark once. The same one again comes from a memory that has
// forgotten the first, and the next script must find out, by a mark no memory shows.
func TestAMarkThatComesTwiceIsOfAnotherMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		marks     [][2]int64 // incarnation, mark
		inc, mark int64
	}{
		"in order":                   {[][2]int64{{5, 1}, {5, 2}, {5, 3}}, 5, 3},
		"out of order":               {[][2]int64{{5, 3}, {5, 1}, {5, 4}, {5, 2}}, 5, 4},
		"twice, the highest":         {[][2]int64{{5, 1}, {5, 2}, {5, 2}}, 5, anotherMemory},
		"twice, a lower one":         {[][2]int64{{5, 1}, {5, 2}, {5, 3}, {5, 2}}, 5, anotherMemory},
		"twice, and on":              {[][2]int64{{5, 1}, {5, 1}, {5, 2}}, 5, anotherMemory},
		"again in a newer memory":    {[][2]int64{{5, 1}, {6, 1}, {6, 2}}, 6, 2},
		"twice, and a newer memory":  {[][2]int64{{5, 1}, {5, 1}, {6, 7}}, 6, 7},
		"late, from an older memory": {[][2]int64{{6, 1}, {5, 9}, {6, 2}}, 6, 2},
		"a full Redis gave none":     {[][2]int64{{5, 1}, {5, 0}, {5, 0}, {0, 0}}, 5, 1},
		"gaps":                       {[][2]int64{{5, 1}, {5, 9000}, {5, 40_000}, {5, 9000}, {5, 39_999}}, 5, 40_000},
		"a window on":                {[][2]int64{{5, 1}, {5, 1 + markWindow}, {5, 2}}, 5, 1 + markWindow},
		"the start of the window":    {[][2]int64{{5, 2}, {5, 1 + markWindow}, {5, 2}}, 5, anotherMemory},
	} {
		var m memory
		for _, p := range c.marks {
			m.remember(p[0], p[1])
		}
		if inc, mark := m.seen(); inc != c.inc || mark != c.mark {
			t.Errorf("%s: seen %d, %d, want %d, %d", name, inc, mark, c.inc, c.mark)
		}
	}
}

// A failover forgets what one edge gave out last, and other edges look at the new memory
// first, many times. Nothing they do may hide from that edge what is missing of its own,
// whatever it asks next.
func TestOtherEdgesDoNotHideWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(t *testing.T, l *Line, room string, called View) error{
		"a look": func(t *testing.T, l *Line, room string, _ View) error { refresh(t, l, room); return nil },
		"a step": func(t *testing.T, l *Line, room string, _ View) error { return l.call(t.Context(), l.own(room)) },
		"a join": func(t *testing.T, l *Line, room string, _ View) error { join(t, l, room, "next"); return nil },
		"a claim": func(t *testing.T, l *Line, room string, v View) error {
			_, _ = l.Claim(t.Context(), room, v.Token)
			return nil
		},
	} {
		for _, lost := range []string{"a place", "an admission"} {
			t.Run(name+" after "+lost, func(t *testing.T) {
				t.Parallel()
				rdb := dial(t, "")
				a, b := newLine(t, rdb), newLine(t, rdb)
				room := openRoom(t, a, 60_000, 2)
				first, second := join(t, a, room, "first"), join(t, a, room, "second")
				step(t, a, room)
				refresh(t, b, room)

				copied := dumpRoom(t, a, room)
				var v View
				if lost == "a place" {
					v = join(t, a, room, "lost")
				} else {
					claim(t, a, room, first.Token)
				}
				restoreRoom(t, a, copied) // the replica that took over had not heard of it
				for i := range 20 {
					join(t, b, room, string(rune('a'+i)))
					refresh(t, b, room)
					step(t, b, room)
				}
				if refresh(t, b, room).view.Recovering {
					t.Fatal("b has seen nothing of it: the test does not test a")
				}
				if err := next(t, a, room, second); err != nil {
					t.Fatal(err)
				}
				if !refresh(t, b, room).view.Recovering {
					t.Fatal("a did not notice")
				}
				if lost == "a place" {
					refresh(t, a, room)
					if v = status(t, a, room, v.Token); v.Status != Waiting {
						t.Errorf("the place that was lost: %+v", v)
					}
				}
			})
		}
	}
}

// Calls were under way when a memory took over that had forgotten what they were told:
// their witness was made before, and is not below it.
func TestCallsUnderWayTellOfAnotherMemory(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	r := l.own(room)
	refresh(t, l, room)
	copied := dumpRoom(t, l, room)
	lost := join(t, l, room, "lost")
	inc, mark := r.memory.seen()
	restoreRoom(t, l, copied)
	r.memory.mu.Lock() // as it was when the second call was sent
	r.memory.mark, r.memory.given = mark-1, [markWindow / 64]uint64{}
	r.memory.mu.Unlock()
	floor := r.floor.Swap(0)
	join(t, l, room, "second")
	r.floor.Store(max(floor, r.floor.Load()))
	r.memory.remember(inc, mark) // the first one's answer arrives last
	if !refresh(t, l, room).view.Recovering {
		t.Fatal("the loss was not noticed")
	}
	if v := status(t, l, room, lost.Token); v.Status != Waiting {
		t.Errorf("the place that was lost: %+v", v)
	}
}

// An edge that no longer looks leaves its mark in Redis for a week, when there are many.
func TestMarksOfEdgesThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	l := newLine(t, rdb)
	room := openRoom(t, l, 0, 1)
	refresh(t, l, room)
	key := l.own(room).keys[kEdges]
	now := time.Now().Unix()
	for i := range 250 {
		id := fmt.Sprintf("%016x", i)
		at := now - 8*86400
		if i < 20 {
			at = now - 6*86400
		}
		if err := rdb.HSet(t.Context(), key, "m:"+id, 5, "a:"+id, at).Err(); err != nil {
			t.Fatal(err)
		}
	}
	other := newLine(t, rdb)
	refresh(t, other, room)
	if n := rdb.HLen(t.Context(), key).Val(); n != 2*(20+2) {
		t.Errorf("%d fields of edges, want those of 22", n)
	}
	if refresh(t, l, room).view.Recovering {
		t.Error("an edge that looks was forgotten")
	}
}

// dumpRoom copies all that Redis keeps of a room; restoreRoom makes it that again.
func dumpRoom(t *testing.T, l *Line, room string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, k := range l.own(room).keys {
		d, err := l.rdb.Dump(t.Context(), k).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		all[k] = d
	}
	return all
}

func restoreRoom(t *testing.T, l *Line, all map[string]string) {
	t.Helper()
	_, err := l.rdb.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		for k, d := range all {
			tx.Del(t.Context(), k)
			if d != "" {
				tx.RestoreReplace(t.Context(), k, 0, d)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
