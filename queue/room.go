package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// room is what an edge keeps of a room: its key names and its latest board.
type room struct {
	name  string
	keys  []string
	board atomic.Pointer[board] // nil until first read
	floor atomic.Int64          // the highest score this edge has seen
	mark  atomic.Int64          // the highest score this edge knows was called; may be ahead of the board's. A draw lowers it
	pmark atomic.Int64          // … of the priority line
	older atomic.Pointer[board] // the last board before a loss; nil when there was none
	mu    sync.Mutex            // one refresh at a time

	together together // what its fans ask of Redis by the thousand
	memory   memory
	promises promises // of waits, until they are settled

	revoked atomic.Pointer[revokedSet] // nil: nobody, or not read yet
}

// saw raises the floor: a Redis that lost its last second, or whose clock went
// back, must not hand out a score that somebody ahead already has.
func (r *room) saw(score int64) { raise(&r.floor, arrival(score)) }

// passed raises the watermark ahead of the next board: who was just called or
// admitted by this edge must not be told a moment later that they wait.
func (r *room) passed(score int64) { raise(r.markOf(score), score) }

// markOf is the watermark of the line that a score is of.
func (r *room) markOf(score int64) *atomic.Int64 {
	if preferred(score) {
		return &r.pmark
	}
	return &r.mark
}

// called reports whether the watermark of its line has reached a score.
func (r *room) called(score int64) bool { return score <= r.markOf(score).Load() }

func raise(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if to <= old || v.CompareAndSwap(old, to) {
			return
		}
	}
}

// lookEvery bounds how often the list of rooms is read for names not known here.
const lookEvery = 250 * time.Millisecond

// roomList is one reading of the names of all rooms.
type roomList struct {
	names map[string]bool
	at    time.Time
	err   error // as long as nobody could look, nobody may say there is no such room
}

// room finds a room with a board. A name not known here is looked for in the list
// of rooms, which is read at most each 250 ms however many names strangers invent;
// only a name on it makes this edge read that one board.
func (l *Line) room(ctx context.Context, name string) (*room, *board, error) {
	if r, b := l.known(name); b != nil {
		return r, b, nil
	}
	if !roomName.MatchString(name) {
		return nil, nil, ErrUnknownRoom
	}
	list, err := shared(ctx, &l.once, "", l.list)
	if err == nil {
		err = list.err
	}
	if err != nil {
		return nil, nil, err
	}
	if !list.names[name] {
		return nil, nil, ErrUnknownRoom
	}
	r := l.own(name)
	b, err := shared(ctx, &l.once, name, func(ctx context.Context) (*board, error) {
		if b := r.board.Load(); b != nil {
			return b, nil
		}
		err := l.refresh(ctx, r)
		return r.board.Load(), err
	})
	switch {
	case err != nil:
		return nil, nil, err
	case b == nil: // on the list, but without settings
		return nil, nil, ErrUnknownRoom
	}
	return r, b, nil
}

// list is the list of rooms, at most lookEvery old.
func (l *Line) list(ctx context.Context) (*roomList, error) {
	if last := l.listed.Load(); last != nil && time.Since(last.at) <= lookEvery {
		return last, nil
	}
	names, err := l.rdb.SMembers(ctx, roomsKey).Result()
	next := &roomList{names: make(map[string]bool, len(names)), at: time.Now()}
	if err != nil {
		next.err = storeError("list rooms", err)
	}
	for _, name := range names {
		next.names[name] = true
	}
	l.listed.Store(next)
	return next, nil
}

// shared does the work once for all who want it at the same time. The work has its
// own time limit, and each caller waits no longer than its own deadline: one whose
// caller went away must not fail the others, nor keep them.
func shared[T any](ctx context.Context, g *singleflight.Group, key string, work func(context.Context) (T, error)) (T, error) {
	done := g.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		return work(ctx)
	})
	var none T
	select {
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", ErrStale, ctx.Err())
	case r := <-done:
		v, ok := r.Val.(T)
		if !ok {
			return none, r.Err
		}
		return v, r.Err
	}
}

// known is the room and its board, from memory; b is nil when there is none.
func (l *Line) known(name string) (r *room, b *board) {
	l.roomsMu.RLock()
	defer l.roomsMu.RUnlock()
	if r = l.rooms[name]; r != nil {
		b = r.board.Load()
	}
	return r, b
}

// own makes room for a room's board.
func (l *Line) own(name string) *room {
	if r, _ := l.known(name); r != nil {
		return r
	}
	l.roomsMu.Lock()
	defer l.roomsMu.Unlock()
	if l.rooms[name] == nil {
		l.rooms[name] = &room{name: name, keys: keysOf(name), together: together{l: l}}
	}
	return l.rooms[name]
}

func (l *Line) allRooms() []*room {
	l.roomsMu.RLock()
	defer l.roomsMu.RUnlock()
	return slices.Collect(maps.Values(l.rooms))
}

// refreshAll reads the list of rooms and every board, and lets the valves decide on
// what the boards say.
func (l *Line) refreshAll(ctx context.Context) error {
	defer l.moved()
	// The list may lie on a node of the cluster that is down: rooms that are known are
	// kept all the same.
	err := l.lists.Run(ctx, []string{roomsKey}, l.readList)
	return errors.Join(err, l.looks.Run(ctx, l.allRooms(), func(ctx context.Context, r *room) error {
		if err := l.refresh(ctx, r); err != nil {
			return err
		}
		return l.steer(ctx, r)
	}))
}

// readList makes room for every room on the list.
func (l *Line) readList(ctx context.Context, key string) error {
	names, err := l.rdb.SMembers(ctx, key).Result()
	if err != nil {
		return storeError("list rooms", err)
	}
	for _, name := range names {
		l.own(name)
	}
	return nil
}

// refresh reads one board.
func (l *Line) refresh(ctx context.Context, r *room) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	reply, err := l.runList(ctx, boardScript, r.keys, exactRanks, sampleRanks, shippedGone, l.witness(r))
	if err != nil {
		return err
	}
	if len(reply) == 0 {
		return nil // the settings are gone: keep the last board, the bridge ships them again
	}
	b := readBoard(r.name, reply, time.Now())
	if err := l.learnRevoked(ctx, r, b.revoked); err != nil {
		return err // the old board serves on, and the next look reads the list
	}
	r.memory.remember(b.inc, b.seen)
	if old := r.board.Load(); old != nil && old.inc != b.inc {
		l.forgot(r, old, b)
	}
	b.view.Valve = b.inForce(l.opts.ReportTTL)
	r.saw(b.last)
	if was := r.board.Load(); was != nil && was.draw.cut != b.draw.cut {
		r.mark.Store(b.mark) // drawn scores lie below all that were called before
	} else {
		r.passed(b.mark)
	}
	r.passed(b.pmark)
	r.board.Store(b)
	l.metrics.observe(b)
	return nil
}

// Room is the public state of a room; ErrUnknownRoom. It asks no store unless the
// name is new here.
func (l *Line) Room(name string) (RoomView, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	_, b, err := l.room(ctx, name)
	if err != nil {
		return RoomView{}, err
	}
	return l.roomView(b), nil
}

// Rooms lists the rooms this edge knows, by name; from memory.
func (l *Line) Rooms() []RoomView {
	views := []RoomView{}
	for _, r := range l.allRooms() {
		if b := r.board.Load(); b != nil {
			views = append(views, l.roomView(b))
		}
	}
	slices.SortFunc(views, func(a, b RoomView) int { return strings.Compare(a.Room, b.Room) })
	return views
}

func (l *Line) roomView(b *board) RoomView {
	v := b.view
	l.ageing(&v, b)
	return v
}

// ageing sets what depends on how old the board is.
func (l *Line) ageing(v *RoomView, b *board) {
	v.ClaimWindow = l.opts.ClaimWindow
	age := time.Since(b.at)
	v.Stale = age > staleAfter
	since := time.Duration(b.now-b.report) * time.Microsecond // one to come is of another clock
	v.InventoryOK = b.report > 0 && since >= -time.Second && since+age <= l.opts.ReportTTL+l.opts.BoardEvery
}
