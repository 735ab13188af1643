package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"usher/booking"
	"usher/queue"
)

// lossyLine is a line whose memory the test decides; it writes down what it is told.
type lossyLine struct {
	fakeLine
	memory queue.Recovery
	told   []string
}

func (f *lossyLine) Recovery(context.Context, string) (queue.Recovery, error) { return f.memory, nil }

func (f *lossyLine) First(_ context.Context, _ string, incarnation int64) error {
	f.told = append(f.told, fmt.Sprint("first ", incarnation))
	f.memory.On = false
	return nil
}

func (f *lossyLine) PutServed(_ context.Context, _ string, served []queue.Served) error {
	f.told = append(f.told, fmt.Sprint("served ", len(served)))
	return nil
}

func (f *lossyLine) Resume(_ context.Context, _ string, incarnation int64, since time.Time) (bool, error) {
	f.told = append(f.told, fmt.Sprint("resume ", incarnation, " ", since.Unix()))
	return false, nil
}

// manyVisits is an office with pages of visits.
type manyVisits struct {
	fakeOffice
	first bool
	pages int
}

func (o manyVisits) FirstMemory(context.Context, string, int64) (bool, error) { return o.first, nil }

func (o manyVisits) Served(_ context.Context, _, after string, _ int) ([]booking.Visit, string, error) {
	n, _ := strconv.Atoi(after)
	next := ""
	if n+1 < o.pages {
		next = strconv.Itoa(n + 1)
	}
	return []booking.Visit{{PlaceID: "p"}}, next, nil
}

func TestTheBridgeEndsAFirstMemorysHoldAtOnceAndAnyOthersLate(t *testing.T) {
	t.Parallel()
	turns := func(office manyVisits, at ...queue.Recovery) string {
		line := &lossyLine{}
		b := &bridge{office: office, line: line, memory: map[string]lineMemory{}, log: quietLog}
		begin, last := time.Now(), time.Time{}
		for _, m := range at {
			line.memory = m
			read := time.Now()
			if m.At.Before(last) { // its reading began before the last answer came
				read = begin
			}
			last = m.At
			if err := b.recover(t.Context(), "hall", read); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(line.told, ", ")
	}
	on := func(inc, at int64) queue.Recovery {
		return queue.Recovery{Incarnation: inc, On: true, At: time.Unix(at, 0)}
	}
	for name, c := range map[string]struct{ got, want string }{
		"the first memory of a room": {turns(manyVisits{first: true}, on(7, 1)), "first 7"},
		// The report of the turn that found the loss was read before it: the next turn's is
		// the first that counts, and it was read after the turn before looked at the clock.
		"a loss": {turns(manyVisits{pages: 2}, on(7, 1), on(7, 2), on(7, 3)), "served 1, served 1, resume 7 1, resume 7 2"},
		"a loss in a recovery": {
			turns(manyVisits{pages: 1}, on(7, 1), on(9, 2), on(9, 3)), "served 1, served 1, resume 9 2",
		},
		"more places than a turn tells": {
			turns(manyVisits{pages: servedPages + 1}, on(7, 1), on(7, 2)),
			strings.Repeat("served 1, ", servedPages+1) + "resume 7 1",
		},
		"a turn whose report was read while the last one still ran": {
			turns(manyVisits{pages: 1}, on(7, 5), on(7, 4), on(7, 6)), "served 1, resume 7 4",
		},
		"nothing lost": {turns(manyVisits{pages: 1}, queue.Recovery{Incarnation: 7}, queue.Recovery{Incarnation: 7}), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}
