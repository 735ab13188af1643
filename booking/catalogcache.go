package booking

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"
)

// readTimeout bounds a read that is made for all who ask at once. It is longer than
// any caller waits: who asks next has what it brings.
const readTimeout = 15 * time.Second

// cacheBound is how many entries one map of the cache may have. Only what exists is
// kept, so a catalogue has to be larger than this to meet it; then the map starts anew.
const cacheBound = 10_000

// slug is what the schema lets be a room's and a showtime's id.
var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// ValidID tells whether id can name a room or a showtime. What cannot is unknown,
// and the database is not asked: it refuses to hear some of it (a zero byte, bytes
// that are not UTF-8), which would read like a fault of ours.
func ValidID(id string) bool { return slug.MatchString(id) }

// catalogCache keeps showtimes for a moment and layouts for good: a layout never
// changes once written, a showtime may get another one.
type catalogCache struct {
	pool  *pgxpool.Pool
	every time.Duration
	load  singleflight.Group

	mu        sync.RWMutex
	showtimes map[string]cachedShowtime
	layouts   map[string]*Layout
	lists     map[string]cachedList // by room
}

type cachedList struct {
	at   time.Time
	list []Showtime
}

type cachedShowtime struct {
	at       time.Time
	showtime *Showtime
	layout   *Layout
}

func newCatalogCache(pool *pgxpool.Pool, every time.Duration) *catalogCache {
	return &catalogCache{pool: pool, every: every, showtimes: map[string]cachedShowtime{}, layouts: map[string]*Layout{}, lists: map[string]cachedList{}}
}

func (c *catalogCache) get(ctx context.Context, id string) (*Showtime, *Layout, error) {
	if !ValidID(id) {
		return nil, nil, ErrUnknownShowtime
	}
	c.mu.RLock()
	hit, ok := c.showtimes[id]
	c.mu.RUnlock()
	if ok && time.Since(hit.at) < c.every {
		return hit.showtime, hit.layout, nil
	}
	// A copy: the read and the map outlive the caller, whose string may lie in a
	// buffer that the next request overwrites.
	id = strings.Clone(id)
	// One reader asks for all; it must not fail because the first caller left.
	ch := c.load.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return c.read(ctx, id)
	})
	select {
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("booking: read showtime: %w", ctx.Err())
	case r := <-ch:
		if r.Err != nil {
			return nil, nil, r.Err
		}
		got, _ := r.Val.(cachedShowtime)
		return got.showtime, got.layout, nil
	}
}

func (c *catalogCache) list(ctx context.Context, room string) ([]Showtime, error) {
	if room != "" && !ValidID(room) {
		return nil, nil
	}
	c.mu.RLock()
	hit, ok := c.lists[room]
	c.mu.RUnlock()
	if ok && time.Since(hit.at) < c.every {
		return hit.list, nil
	}
	room = strings.Clone(room) // as in get
	ch := c.load.DoChan("room\x00"+room, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		list, err := loadShowtimes(ctx, c.pool, sqlShowtimes, room)
		if err != nil {
			return nil, fmt.Errorf("booking: list showtimes: %w", err)
		}
		if len(list) > 0 { // an empty answer is not kept: anybody may ask for any name
			c.mu.Lock()
			if len(c.lists) >= cacheBound {
				clear(c.lists)
			}
			c.lists[room] = cachedList{at: time.Now(), list: list}
			c.mu.Unlock()
		}
		return list, nil
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("booking: list showtimes: %w", ctx.Err())
	case r := <-ch:
		list, _ := r.Val.([]Showtime)
		return list, r.Err
	}
}

// forget makes the next get of a showtime read it again.
func (c *catalogCache) forget(id string) {
	c.mu.Lock()
	delete(c.showtimes, id)
	c.mu.Unlock()
}

func (c *catalogCache) read(ctx context.Context, id string) (cachedShowtime, error) {
	list, err := loadShowtimes(ctx, c.pool, sqlShowtime, id)
	if err != nil {
		return cachedShowtime{}, fmt.Errorf("booking: read showtime: %w", err)
	}
	if len(list) == 0 {
		// Not remembered: anybody may ask for any name.
		return cachedShowtime{}, ErrUnknownShowtime
	}
	layout, err := c.layout(ctx, list[0].LayoutID)
	if err != nil {
		return cachedShowtime{}, err
	}
	list[0].sectionCost = sectionCosts(&list[0], layout)
	entry := cachedShowtime{at: time.Now(), showtime: &list[0], layout: layout}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.showtimes[id]; ok && reflect.DeepEqual(old.showtime, entry.showtime) {
		entry.showtime = old.showtime // the same pointer: what is derived from it stays good
	}
	if len(c.showtimes) >= cacheBound {
		clear(c.showtimes)
	}
	c.showtimes[id] = entry
	return entry, nil
}

func (c *catalogCache) layout(ctx context.Context, id string) (*Layout, error) {
	c.mu.RLock()
	l := c.layouts[id]
	c.mu.RUnlock()
	if l != nil {
		return l, nil
	}
	l = &Layout{ID: id}
	if err := c.pool.QueryRow(ctx, sqlLayout, id).Scan(&l.Shape); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, fmt.Errorf("booking: layout %q is missing: %w", id, ErrUnknownShowtime)
		}
		return nil, fmt.Errorf("booking: read layout: %w", err)
	}
	rows, _ := c.pool.Query(ctx, sqlLayoutSeats, id)
	seats, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Seat, err error) {
		err = row.Scan(&s.Code, &s.Section, &s.Row, &s.Number, &s.RowIndex, &s.Position, &s.X, &s.Y, &s.PriceClass, &s.Accessible, &s.Standing)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("booking: read layout: %w", err)
	}
	l.Seats, l.index = seats, make(map[string]int, len(seats))
	for i := range seats {
		l.index[seats[i].Code] = i
	}
	c.mu.Lock()
	if len(c.layouts) >= cacheBound {
		clear(c.layouts)
	}
	c.layouts[id] = l
	c.mu.Unlock()
	return l, nil
}
