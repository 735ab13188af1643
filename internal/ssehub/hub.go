package ssehub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// Why a stream could not be opened.
var (
	ErrFull   = errors.New("ssehub: no stream is free")
	ErrClosed = errors.New("ssehub: the hub does not run")
)

// Why a stream ended; labels of the metric.
const (
	Ended    = "ended"    // nothing more will happen to what it tells of
	Moved    = "moved"    // what it tells of is told by another address from now on
	Replaced = "replaced" // by newer ones of the same client
	Gone     = "gone"     // the client left
	Slow     = "slow"     // the client took nothing for Stall
	Unopened = "unopened" // its request ended before it began
	Drained  = "drained"  // the process stops
)

var reasons = []string{Ended, Moved, Replaced, Gone, Slow, Unopened, Drained}

// Options configure a Hub.
type Options struct {
	Max        int                   // most streams at once; 0: none. At most half the process' descriptors
	Heartbeat  time.Duration         // a comment after so long without an event; default 20 s
	Stall      time.Duration         // a client that takes nothing for so long is dropped; default 10 s
	Subsystem  string                // of the metrics, usher_<subsystem>_streams…; default "sse"
	Registerer prometheus.Registerer // default: metrics nobody reads
}

// Hub keeps streams. It is safe for concurrent use.
type Hub struct {
	opts   Options
	sent   prometheus.Counter
	closed *prometheus.CounterVec

	mu      sync.Mutex
	streams map[*Stream]struct{}
	running bool
	free    atomic.Bool // what Free says: asked at each poll of a fan near the head
}

// New makes a hub without streams; it starts nothing.
func New(o Options) (*Hub, error) {
	if o.Heartbeat == 0 {
		o.Heartbeat = 20 * time.Second
	}
	if o.Stall == 0 {
		o.Stall = 10 * time.Second
	}
	if o.Subsystem == "" {
		o.Subsystem = "sse"
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		o.Max = int(min(uint64(max(o.Max, 0)), uint64(limit.Cur)/2))
	}
	h := &Hub{opts: o, streams: map[*Stream]struct{}{}}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "usher", Subsystem: o.Subsystem, Name: "streams", Help: "Event streams open now.",
	}, func() float64 { return float64(h.Len()) })
	h.sent = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "usher", Subsystem: o.Subsystem, Name: "stream_events_total", Help: "Events given to streams, without heartbeats.",
	})
	h.closed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "usher", Subsystem: o.Subsystem, Name: "streams_closed_total",
		Help: "Streams that ended: ended, moved, replaced, gone, slow, unopened, drained.",
	}, []string{"reason"})
	for _, c := range []prometheus.Collector{open, h.sent, h.closed} {
		if err := o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("ssehub: metrics: %w", err)
		}
	}
	for _, r := range reasons {
		h.closed.WithLabelValues(r)
	}
	return h, nil
}

// Len is how many streams there are.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams)
}

// Free tells whether a stream can be opened now.
func (h *Hub) Free() bool { return h.free.Load() }

// counted notes what Free says; under mu, after each change.
func (h *Hub) counted() { h.free.Store(h.running && len(h.streams) < h.opts.Max) }

// sweepEvery is how often streams are looked after.
const sweepEvery = time.Second

// Run looks after the streams until ctx ends: heartbeats, what was not taken yet,
// clients that left. It closes what is open then, and returns nil.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	h.running = true
	h.counted()
	h.mu.Unlock()
	defer h.Drain(0)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			for _, s := range h.all() {
				s.sweep(now)
			}
		}
	}
}

func (h *Hub) all() []*Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Stream, 0, len(h.streams))
	for s := range h.streams {
		list = append(list, s)
	}
	return list
}

// Drain ends all streams and takes no new ones, until Run is called again. Each client is
// told to come back after a random delay of up to spread, and a second at least.
func (h *Hub) Drain(spread time.Duration) {
	h.mu.Lock()
	h.running = false
	h.counted()
	h.mu.Unlock()
	for _, s := range h.all() {
		s.Close(AppendRetry(nil, time.Second, time.Second+spread), Drained)
	}
}

// AppendRetry appends the field by which a client learns how long to wait before it
// comes back: a random time between the two.
func AppendRetry(b []byte, low, high time.Duration) []byte {
	wait := low
	if high > low {
		wait += rand.N(high - low)
	}
	return fmt.Appendf(b, "retry: %d\n\n", wait.Milliseconds())
}

// AppendEvent appends one event; data must be one line, as JSON is.
func AppendEvent(b []byte, name string, data []byte) []byte {
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	return append(append(b, data...), "\n\n"...)
}
