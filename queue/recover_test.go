package queue

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/loadtest/check"
)

// postgres is what booking would know in these tests, and the bridge over it.
type postgres struct {
	l        *Line
	settings Settings

	mu       sync.Mutex
	living   []SlotRef
	ended    []SlotRef
	began    []Served
	memories map[int64]bool
	told     int64
	at       time.Time
}

func newPostgres(l *Line, room string, slots int) *postgres {
	return &postgres{l: l, memories: map[int64]bool{}, settings: Settings{
		Room: room, Title: "Hall", Mode: "fifo", State: "open", RatePerMinute: 100_000, Cap: slots, Run: 1, Version: 1, Guard: true,
	}}
}

// turn is the bridge's, as cmd/usher has it. Sessions are read before anything is shipped.
func (p *postgres) turn(t testing.TB) {
	t.Helper()
	if err := p.tryTurn(t); err != nil {
		t.Fatal(err)
	}
}

func (p *postgres) tryTurn(t testing.TB) error {
	ctx, room := t.Context(), p.settings.Room
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.at
	r := Report{At: time.Now(), Living: slices.Clone(p.living), Ended: slices.Clone(p.ended), Available: 5, Total: 9}
	if err := p.l.PutSettings(ctx, p.settings); err != nil {
		return err
	}
	if err := p.l.PutReport(ctx, room, r); err != nil {
		return err
	}
	rec, err := p.l.Recovery(ctx, room)
	if err != nil {
		return err
	}
	p.at = rec.At
	first := len(p.memories) == 0 && len(p.began) == 0
	if !p.memories[rec.Incarnation] {
		p.memories[rec.Incarnation] = true
		if first {
			return p.l.First(ctx, room, rec.Incarnation)
		}
	}
	if rec.On && p.told != rec.Incarnation {
		p.told = rec.Incarnation
		return p.l.PutServed(ctx, room, p.began)
	}
	if rec.On {
		_, err = p.l.Resume(ctx, room, rec.Incarnation, since)
	}
	return err
}

func (p *postgres) exchange(a Admission) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.living = append(p.living, SlotRef{PlaceID: a.PlaceID, JTI: a.JTI, Began: time.Now()})
	p.began = append(p.began, Served{PlaceID: a.PlaceID, Began: time.Now()})
}

func (p *postgres) end(a Admission) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.living = slices.DeleteFunc(p.living, func(r SlotRef) bool {
		if r.PlaceID == a.PlaceID {
			p.ended = append(p.ended, r)
		}
		return r.PlaceID == a.PlaceID
	})
}

// fanInLine is one fan as a browser would be.
type fanInLine struct {
	name  string
	token Token
	shown int
}

func (f *fanInLine) poll(t testing.TB, l *Line, room string) View {
	t.Helper()
	v, err := l.Status(t.Context(), room, f.token, f.shown)
	if err != nil {
		t.Fatalf("%s polls: %v", f.name, err)
	}
	if v.Status == Waiting {
		if f.shown > 0 && v.Position > f.shown {
			t.Errorf("%s was shown %d, then %d", f.name, f.shown, v.Position)
		}
		if v.Position > 0 {
			f.shown = v.Position
		}
	}
	if v.Token != f.token {
		f.token, f.shown = v.Token, 0
	}
	return v
}

// sale is a room in the middle of its sale: 5 slots of which 3 are living sessions, 1 a
// pass nobody has exchanged yet and 1 empty; 1 visit is over; the rest wait or were called.
type sale struct {
	t       *testing.T
	edges   []*Line
	pg      *postgres
	room    string
	fans    []*fanInLine // in order of arrival
	inside  []Admission
	pending Admission
	slots   int
}

func shortLives(o *Options) { o.PassLife, o.SlotLease = 2*time.Second, time.Minute }

func newSale(t *testing.T, dialEdge func() *redis.Client, room string) *sale {
	t.Helper()
	s := &sale{t: t, room: room, slots: 5}
	for range 2 {
		s.edges = append(s.edges, newLine(t, dialEdge(), shortLives))
	}
	s.pg = newPostgres(newLine(t, dialEdge(), shortLives), room, s.slots)
	s.pg.turn(t)
	if v := refresh(t, s.edges[0], room).view; v.Recovering {
		t.Fatal("a first start waits for a recovery")
	}
	s.refresh()
	for i := range 40 {
		s.join(fmt.Sprintf("fan-%02d", i))
	}
	step(t, s.edges[0], room)
	for i := range 5 {
		a := s.admit(i)
		switch i {
		case 0:
			s.pg.exchange(a)
			s.pg.end(a)
		case 4:
			s.pending = a
		default:
			s.pg.exchange(a)
			s.inside = append(s.inside, a)
		}
	}
	s.pg.turn(t)
	step(t, s.edges[1], room)
	s.refresh()
	for _, f := range s.fans[5:] {
		f.poll(t, s.edges[0], room)
	}
	if v := s.edges[0].own(room).board.Load().view; v.Inside != 4 || v.Called == 0 {
		t.Fatalf("not the sale that was meant: %+v", v)
	}
	return s
}

func (s *sale) edge() *Line { return s.edges[rand.IntN(len(s.edges))] }

func (s *sale) join(name string) *fanInLine {
	s.t.Helper()
	f := &fanInLine{name: name}
	f.token = join(s.t, s.edge(), s.room, name).Token
	s.fans = append(s.fans, f)
	return f
}

func (s *sale) refresh() {
	s.t.Helper()
	for _, l := range s.edges {
		refresh(s.t, l, s.room)
	}
}

// admit claims until a pass is there.
func (s *sale) admit(i int) Admission {
	s.t.Helper()
	var a Admission
	eventually(s.t, 10*time.Second, s.fans[i].name+" comes in", func() bool {
		step(s.t, s.edge(), s.room)
		var err error
		a, err = s.edge().Claim(s.t.Context(), s.room, s.fans[i].token)
		return err == nil
	})
	return a
}

// recovers lives through the loss: who shows a place has it back, nobody is let in
// before the hold is over, and the pass of before is exchanged meanwhile.
func (s *sale) recovers(newcomers int) {
	t := s.t
	t.Helper()
	s.pg.turn(t)
	s.refresh()
	for i := range newcomers {
		s.join(fmt.Sprintf("new-%02d", i))
	}
	for _, i := range rand.Perm(len(s.fans)) {
		if f := s.fans[i]; i > 4 {
			if v := f.poll(t, s.edge(), s.room); v.Status != Waiting || !v.Room.Recovering {
				t.Errorf("%s is %s, recovering %v", f.name, v.Status, v.Room.Recovering)
			}
		}
	}
	s.pg.exchange(s.pending) // in the last moment of its life
	begun := time.Now()
	for i := 0; s.edges[0].own(s.room).board.Load().view.Recovering; i++ {
		step(t, s.edge(), s.room)
		f := s.fans[5+i%10]
		if _, err := s.edge().Claim(t.Context(), s.room, f.token); !errors.Is(err, ErrRecovering) && !errors.Is(err, ErrNotCalledYet) {
			if s.refresh(); s.edges[0].own(s.room).board.Load().view.Recovering {
				t.Fatalf("%s claims in the recovery: %v", f.name, err)
			}
		}
		f.poll(t, s.edge(), s.room)
		s.pg.turn(t)
		s.refresh()
		if time.Since(begun) > time.Minute {
			t.Fatal("the recovery does not end")
		}
		time.Sleep(100 * time.Millisecond) // a turn of the bridge
	}
	if took := time.Since(begun); took < s.edges[0].opts.PassLife {
		t.Errorf("the recovery took %s: a pass of before could still come", took)
	}
	for _, a := range append(slices.Clone(s.inside), s.pending) {
		i := slices.IndexFunc(s.fans, func(f *fanInLine) bool {
			p, _ := s.edges[0].verify(s.room, f.token)
			return p.id() == a.PlaceID
		})
		again, err := s.edge().Claim(t.Context(), s.room, s.fans[i].token)
		if err != nil || again.JTI != a.JTI {
			t.Errorf("%s, who is inside: %v, pass %s, had %s", s.fans[i].name, err, again.JTI, a.JTI)
		}
	}
	if v := s.fans[0].poll(t, s.edge(), s.room); v.Status != Expired {
		t.Errorf("who was served is %s again", v.Status)
	}
	if v := s.edges[0].own(s.room).board.Load().view; v.Inside != 4 || v.Called > 1 {
		t.Errorf("after the recovery %+v", v)
	}
}

// sellOut lets everybody through and checks the order, the cap, and that nobody came twice.
func (s *sale) sellOut() {
	t := s.t
	t.Helper()
	came, admissions := []string{}, map[string]time.Time{}
	for _, f := range s.fans[5:] {
		came = append(came, f.name)
	}
	visits := append(slices.Clone(s.inside), s.pending)
	waiting := slices.Clone(s.fans[5:])
	for begun := time.Now(); len(waiting) > 0; {
		step(t, s.edge(), s.room)
		waiting = slices.DeleteFunc(waiting, func(f *fanInLine) bool {
			a, err := s.edge().Claim(t.Context(), s.room, f.token)
			if err != nil {
				return false
			}
			if _, twice := admissions[f.name]; twice {
				t.Errorf("%s was admitted twice", f.name)
			}
			admissions[f.name] = a.GrantedAt // passes may be fetched in another order
			s.pg.exchange(a)
			visits = append(visits, a)
			return true
		})
		if len(visits) > s.slots {
			t.Fatalf("%d inside, cap %d", len(visits), s.slots)
		}
		for _, a := range visits {
			s.pg.end(a)
		}
		visits = nil
		s.pg.turn(t)
		if time.Since(begun) > 90*time.Second {
			t.Fatalf("%d still wait, after %d", len(waiting), len(admissions))
		}
	}
	served := slices.SortedFunc(maps.Keys(admissions), func(a, b string) int { return admissions[a].Compare(admissions[b]) })
	if o := check.Compare(came, served); o.Inversions != 0 || len(o.Duplicates)+len(o.Strangers)+len(o.Missing) != 0 {
		t.Errorf("order %+v\n%v", o, served)
	}
	s.refresh()                // an edge's board is a second old at most; here only this makes it so
	for _, f := range s.fans { // an old token is worth nothing by now
		if _, err := s.edge().Claim(t.Context(), s.room, f.token); err == nil {
			t.Errorf("%s was let in twice", f.name)
		}
		if v, err := s.edge().Status(t.Context(), s.room, f.token, 0); err != nil || v.Status != Expired {
			t.Errorf("%s is %s after the visit, %v", f.name, v.Status, err)
		}
	}
}

func TestQ15_AnEmptiedRedisGivesEveryPlaceBack(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	s := newSale(t, func() *redis.Client { return rdb }, "hall")
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	// The fan's numbers stay while nobody knows better.
	if v := s.fans[20].poll(t, s.edges[0], s.room); v.Status != Waiting || v.Position == 0 {
		t.Errorf("right after the loss: %+v", v)
	}
	if _, err := s.edges[0].Join(t.Context(), s.room, Fan{ID: "x"}); !errors.Is(err, ErrStale) {
		t.Errorf("joined a room without settings: %v", err)
	}
	s.recovers(10)
	if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.sellOut()
}

// Nobody remembers: Redis and every edge begin anew together. Only Postgres knows.
func TestQ15_EverythingRestartsTogether(t *testing.T) {
	t.Parallel()
	rdb := ownRedis(t)
	s := newSale(t, func() *redis.Client { return rdb }, "hall")
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range s.edges {
		s.edges[i] = newLine(t, rdb, shortLives)
	}
	s.pg.l, s.pg.at, s.pg.told = newLine(t, rdb, shortLives), time.Time{}, 0
	s.recovers(10)
	s.sellOut()
}
