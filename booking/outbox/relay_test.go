package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"usher/booking/bookingtest"
)

// heap is a sink that keeps what it is sent, by booking, in order of arrival.
type heap struct {
	mu   sync.Mutex
	got  map[string][]int
	what func(ctx context.Context, m Message) (arrives bool, err error) // nil: all is well
}

func (h *heap) Name() string { return "heap" }
func (h *heap) Close()       {}

func (h *heap) Send(ctx context.Context, messages []Message) []error {
	errs := make([]error, len(messages))
	for i, m := range messages {
		arrives := true
		if h.what != nil {
			arrives, errs[i] = h.what(ctx, m)
		}
		if arrives {
			h.mu.Lock()
			if h.got == nil {
				h.got = map[string][]int{}
			}
			h.got[m.BookingID] = append(h.got[m.BookingID], m.Seq)
			h.mu.Unlock()
		}
	}
	return errs
}

func (h *heap) count() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, seqs := range h.got {
		n += len(seqs)
	}
	return n
}

// write puts events into the outbox as confirmed transactions would.
func write(t *testing.T, pool *pgxpool.Pool, bookings, each int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
		SELECT 'show', gen_random_uuid(), md5('booking ' || b)::uuid, s, 'BookingConfirmed', jsonb_build_object('seq', s)
		  FROM generate_series(1, $1) b, generate_series(1, $2) s ORDER BY random()`, bookings, each)
	if err != nil {
		t.Fatal(err)
	}
}

func unsent(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox WHERE sent_at IS NULL`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func newRelay(t *testing.T, pool *pgxpool.Pool, sink Sink, change ...func(*RelayOptions)) *Relay {
	t.Helper()
	o := RelayOptions{Sink: sink, Every: 50 * time.Millisecond, Again: 10 * time.Millisecond, Registerer: prometheus.NewRegistry()}
	for _, f := range change {
		f(&o)
	}
	r, err := NewRelay(pool, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runs keeps relays going; stop ends them and waits.
func runs(t *testing.T, relays ...*Relay) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, r := range relays {
		wg.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// Four relays, a sink that refuses some, takes some and says it did not, and events
// that come meanwhile: all arrive, and what arrives for the first time is in order.
func TestEventsOfABookingArriveInOrderByManyRelays(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	sink := &heap{what: func(context.Context, Message) (bool, error) {
		switch rand.N(6) {
		case 0:
			return false, errors.New("refused")
		case 1:
			return true, errors.New("the answer is lost")
		}
		return true, nil
	}}
	var relays []*Relay
	for range 4 {
		relays = append(relays, newRelay(t, pool, sink, func(o *RelayOptions) { o.Batch = 7 }))
	}
	write(t, pool, 40, 4)
	stop := runs(t, relays...)
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
		SELECT 'show', gen_random_uuid(), md5('booking ' || b)::uuid, 5, 'BookingRefunded', '{}' FROM generate_series(1, 40) b`); err != nil {
		t.Fatal(err)
	}
	soon(t, "all is sent", func() bool { return unsent(t, pool) == 0 })
	stop()
	if len(sink.got) != 40 {
		t.Fatalf("%d bookings", len(sink.got))
	}
	for booking, seqs := range sink.got {
		last := 0
		for _, seq := range seqs {
			if seq > last+1 {
				t.Errorf("booking %s: %v", booking, seqs)
			}
			last = max(last, seq)
		}
		if last != 5 {
			t.Errorf("booking %s ends with %d", booking, last)
		}
	}
	var sent, failed float64
	for _, r := range relays {
		sent += testutil.ToFloat64(r.metrics.sent.WithLabelValues(BookingConfirmed)) + testutil.ToFloat64(r.metrics.sent.WithLabelValues(BookingRefunded))
		failed += testutil.ToFloat64(r.metrics.failures)
	}
	if sent != 200 || failed == 0 {
		t.Errorf("counted: %v sent, %v failed", sent, failed)
	}
}

// An event that no sink takes keeps the later ones of its booking, and nobody else's.
func TestAnEventThatCannotBeSentKeepsItsBookingAlone(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	write(t, pool, 5, 3)
	var bad string
	if err := pool.QueryRow(t.Context(), `SELECT booking_id::text FROM outbox LIMIT 1`).Scan(&bad); err != nil {
		t.Fatal(err)
	}
	sink := &heap{what: func(_ context.Context, m Message) (bool, error) {
		if m.BookingID == bad && m.Seq == 2 {
			return false, errors.New("too large")
		}
		return true, nil
	}}
	r := newRelay(t, pool, sink)
	runs(t, r)
	soon(t, "the others are sent", func() bool { return unsent(t, pool) == 2 })
	soon(t, "it is tried again", func() bool { return testutil.ToFloat64(r.metrics.failures) > 2 })
	sink.mu.Lock()
	defer sink.mu.Unlock()
	if got := sink.got[bad]; !slices.Equal(got, []int{1}) {
		t.Errorf("of the bad one came %v", got)
	}
}

// A relay that is cut off between sending and marking leaves its events to the others,
// once its lease is over and not before.
func TestTheEventsOfARelayThatDiesAreSentByAnother(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	write(t, pool, 3, 2)
	dying := bookingtest.PoolOn(t, pool.Config().ConnString())
	sink := &heap{}
	r := newRelay(t, dying, &heap{what: func(context.Context, Message) (bool, error) {
		go dying.Close() // its process is gone: nothing can be marked
		<-time.After(100 * time.Millisecond)
		return true, nil
	}}, func(o *RelayOptions) { o.Lease, o.SendWithin = 3*time.Second, time.Second })
	if _, err := r.turn(t.Context()); err == nil {
		t.Fatal("marked without a database")
	}
	start := time.Now()
	other := newRelay(t, pool, sink)
	if n, err := other.turn(t.Context()); n != 0 || err != nil {
		t.Errorf("at once: %d, %v", n, err)
	}
	runs(t, other)
	soon(t, "all is sent", func() bool { return unsent(t, pool) == 0 })
	if took := time.Since(start); took < time.Second {
		t.Errorf("another's lease was broken after %s", took)
	}
	for booking, seqs := range sink.got {
		if !slices.Equal(seqs, []int{1, 2}) {
			t.Errorf("%s: %v", booking, seqs)
		}
	}
}

// Relays that never look by themselves: the ring of one wakes another by the database,
// and one whose listening connection is lost gets a new one and looks what it missed.
func TestRelaysAreWokenByTheDatabase(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	seldom := func(o *RelayOptions) { o.Every = time.Hour }
	sink := &heap{}
	listener := newRelay(t, pool, sink, seldom)
	ringer := newRelay(t, pool, &heap{what: func(context.Context, Message) (bool, error) { return false, errors.New("no broker here") }},
		seldom, func(o *RelayOptions) { o.Batch = 1; o.Again = time.Millisecond })
	runs(t, listener)
	listening := func() (n int) {
		_ = pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN usher_outbox'`).Scan(&n)
		return n
	}
	soon(t, "it listens", func() bool { return listening() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { ringer.bell(ctx) })
	for i := range 3 {
		write(t, pool, 1, 0)
		if _, err := pool.Exec(t.Context(), `INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
			VALUES ('show', gen_random_uuid(), gen_random_uuid(), 1, 'BookingFailed', '{}')`); err != nil {
			t.Fatal(err)
		}
		ringer.Ring()
		soon(t, "a rung event is sent", func() bool { return sink.count() == i+1 })
	}
	cancel()
	wg.Wait()
	if _, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND query = 'LISTEN usher_outbox'`); err != nil {
		t.Fatal(err)
	}
	write(t, pool, 4, 1)
	soon(t, "what was missed is sent", func() bool { return sink.count() == 7 })
	soon(t, "it listens again", func() bool { return listening() == 1 })
}

func TestEventsInAFile(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	path := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(path, []byte(`{"seq":1}`+"\n"+`{"se`), 0o600); err != nil { // a machine died here
		t.Fatal(err)
	}
	write(t, pool, 50, 3)
	var relays []*Relay
	for range 2 { // two processes
		sink, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sink.Close)
		relays = append(relays, newRelay(t, pool, sink, func(o *RelayOptions) { o.Batch = 10 }))
	}
	stop := runs(t, relays...)
	soon(t, "all is sent", func() bool { return unsent(t, pool) == 0 })
	stop()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) != 152 || lines[1] != `{"se` {
		t.Fatalf("%d lines, %q", len(lines), lines[:3])
	}
	for i, line := range slices.Delete(lines, 1, 2) {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d: %q", i, line)
		}
	}
	gone, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	if errs := gone.Send(t.Context(), []Message{{Payload: []byte("{}")}}); errs[0] == nil {
		t.Error("a closed file takes events")
	}
}

func TestRelayOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]RelayOptions{
		"no sink":            {},
		"outlives its lease": {Sink: &heap{}, Lease: time.Second, SendWithin: time.Second},
		"negative":           {Sink: &heap{}, Every: -1},
	} {
		if _, err := NewRelay(nil, o); err == nil {
			t.Error(name)
		} else if !strings.HasPrefix(fmt.Sprint(err), "outbox: ") {
			t.Error(err)
		}
	}
}
