package booking

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"
)

// The statuses of a seat, as the database and the map spell them.
const (
	SeatAvailable = "AVAILABLE"
	SeatHeld      = "HELD"
	SeatBooked    = "BOOKED"
)

// seatState is a status in memory.
type seatState byte

const (
	seatFree seatState = iota
	seatHeld
	seatBooked
)

func (s seatState) String() string { return [...]string{SeatAvailable, SeatHeld, SeatBooked}[s] }

func parseState(status string) seatState {
	switch status {
	case SeatHeld:
		return seatHeld
	case SeatBooked:
		return seatBooked
	}
	return seatFree
}

// sqlSeatsNow reads only what is not free: before the sale that is nothing. The
// rest of a lease is told as a duration, so that no other clock than the
// database's ever decides.
const sqlSeatsNow = `
	SELECT seat_code, status, COALESCE(extract(epoch FROM hold_expires_at - clock_timestamp()), 0)::float8
	  FROM show_seat
	 WHERE showtime_id = $1 AND status <> 'AVAILABLE' AND (status = 'BOOKED' OR hold_expires_at > clock_timestamp())`

// mapIdle is how long nobody must ask for a map before it is forgotten.
const mapIdle = 5 * time.Minute

// mapCache holds the watched showtimes' statuses.
type mapCache struct {
	office *Office
	load   singleflight.Group
	mu     sync.Mutex
	maps   map[string]*watch
}

// watch is one showtime's statuses in memory, in the layout's order.
type watch struct {
	mu       sync.Mutex
	layout   *Layout
	showtime *Showtime
	states   []seatState
	until    []time.Time // monotonic end of a lease, for seatHeld
	readAt   time.Time
	usedAt   time.Time
	recent   []change // own commits that a read under way may have missed
	current  *SeatMap // last encoding
	static   *staticMap
}

type change struct {
	at    time.Time
	seats []string
	state seatState
	until time.Time
}

func newMapCache(o *Office) *mapCache { return &mapCache{office: o, maps: map[string]*watch{}} }

func (m *mapCache) get(id string) *watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.maps[id]
	if w == nil {
		w = &watch{}
		m.maps[id] = w
	}
	w.touch()
	return w
}

func (w *watch) touch() {
	w.mu.Lock()
	w.usedAt = time.Now()
	w.mu.Unlock()
}

// apply shows a change this process committed, without waiting for the next
// read. A showtime nobody watches has nothing to show.
func (m *mapCache) apply(showtimeID string, seats []string, state seatState, lease time.Duration) {
	m.mu.Lock()
	w := m.maps[showtimeID]
	m.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := change{at: time.Now(), seats: seats, state: state, until: time.Now().Add(lease)}
	if len(w.recent) > 1024 { // nobody reads the map: no read can be under way that long
		kept := slices.DeleteFunc(w.recent, func(c change) bool { return time.Since(c.at) > 10*time.Second })
		w.recent = kept
	}
	w.recent = append(w.recent, c)
	w.put(c)
}

func (w *watch) put(c change) {
	if w.layout == nil {
		return
	}
	for _, s := range c.seats {
		if i, ok := w.layout.index[s]; ok {
			w.states[i], w.until[i] = c.state, c.until
		}
	}
}

// fresh returns the watch with statuses at most MapEvery old.
func (m *mapCache) fresh(ctx context.Context, id string) (*watch, error) {
	// First: who asks for an unknown name must leave nothing in memory.
	st, layout, err := m.office.catalog.get(ctx, id)
	if err != nil {
		return nil, err
	}
	w := m.get(st.ID) // not id: its string is the caller's, and may be overwritten
	w.mu.Lock()
	ok := w.layout == layout && time.Since(w.readAt) < m.office.opts.MapEvery
	if ok {
		w.showtime = st
	}
	w.mu.Unlock()
	if ok {
		return w, nil
	}
	ch := m.load.DoChan(st.ID, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return nil, m.read(ctx, w, st, layout)
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("booking: read seats: %w", ctx.Err())
	case r := <-ch:
		return w, r.Err
	}
}

func (m *mapCache) read(ctx context.Context, w *watch, st *Showtime, layout *Layout) error {
	begun := time.Now()
	states, until := make([]seatState, len(layout.Seats)), make([]time.Time, len(layout.Seats))
	rows, _ := m.office.pool.Query(ctx, sqlSeatsNow, st.ID)
	var code, status string
	var left float64
	_, err := pgx.ForEachRow(rows, []any{&code, &status, &left}, func() error {
		if i, ok := layout.index[code]; ok {
			states[i], until[i] = parseState(status), begun.Add(time.Duration(left*float64(time.Second)))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("booking: read seats: %w", err)
	}
	w.store(st, layout, states, until, begun)
	return nil
}

// store takes over what a read that began at begun has found.
func (w *watch) store(st *Showtime, layout *Layout, states []seatState, until []time.Time, begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.layout != layout {
		w.static = nil
	}
	w.layout, w.showtime, w.states, w.until, w.readAt = layout, st, states, until, begun
	// What this process committed while the read was under way may be missing in it.
	kept := w.recent[:0]
	for _, c := range w.recent {
		if c.at.After(begun) {
			w.put(c)
			kept = append(kept, c)
		}
	}
	clear(w.recent[len(kept):])
	w.recent = kept
}

// now returns the status of seat i at t.
func (w *watch) now(i int, t time.Time) seatState {
	if w.states[i] == seatHeld && !w.until[i].After(t) {
		return seatFree
	}
	return w.states[i]
}

func (m *mapCache) evictLoop(ctx context.Context) error {
	t := time.NewTicker(mapIdle / 5)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			m.evict(now)
		}
	}
}

func (m *mapCache) evict(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, w := range m.maps {
		w.mu.Lock()
		if now.Sub(w.usedAt) > mapIdle {
			delete(m.maps, id)
		}
		w.mu.Unlock()
	}
}

// SeatsChanged shows a change this process committed outside a lane (a booking,
// a refund) at once; status is one of the Seat… constants and lease counts for
// SeatHeld only. The map would find out by itself within MapEvery.
func (o *Office) SeatsChanged(showtimeID string, seats []string, status string, lease time.Duration) {
	o.maps.apply(showtimeID, seats, parseState(status), lease)
}
