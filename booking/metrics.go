package booking

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	queueWait  prometheus.Histogram
	batchSize  prometheus.Histogram
	batchTime  prometheus.Histogram
	shed       prometheus.Counter
	holds      *prometheus.CounterVec
	sweptHolds prometheus.Counter
}

// newMetrics registers with reg; nil keeps the numbers to itself.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	seconds := prometheus.ExponentialBuckets(0.0005, 2, 14) // 0.5 ms … 4 s
	m := &metrics{
		queueWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "usher_lane_queue_wait_seconds", Help: "Time a hold request waited before its step began.", Buckets: seconds,
		}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "usher_lane_batch_requests", Help: "Requests one commit carried.", Buckets: prometheus.ExponentialBuckets(1, 2, 9),
		}),
		batchTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "usher_lane_batch_seconds", Help: "Time from a step's begin to its commit.", Buckets: seconds,
		}),
		shed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "usher_lane_shed_total", Help: "Hold requests refused because their lane's queue was full.",
		}),
		holds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "usher_holds_total", Help: "Hold requests by what became of them.",
		}, []string{"outcome"}),
		sweptHolds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "usher_holds_swept_total", Help: "Expired holds the sweeper has recorded.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.queueWait, m.batchSize, m.batchTime, m.shed, m.holds, m.sweptHolds} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("booking: metrics: %w", err)
		}
	}
	return m, nil
}

// laneStats is what the bridge's report says of a lane since the last report.
type laneStats struct {
	shed atomic.Int64

	mu       sync.Mutex
	waitSum  time.Duration
	waits    int64
	batchSum time.Duration
	batches  int64
}

func (s *laneStats) observe(m *metrics, batch []*pending, start, end time.Time) {
	m.batchSize.Observe(float64(len(batch)))
	m.batchTime.Observe(end.Sub(start).Seconds())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range batch {
		wait := start.Sub(p.arrived)
		m.queueWait.Observe(wait.Seconds())
		s.waitSum += wait
		s.waits++
	}
	s.batchSum += end.Sub(start)
	s.batches++
}

// drain returns the means since the last call.
func (s *laneStats) drain() (wait, batch time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits > 0 {
		wait = s.waitSum / time.Duration(s.waits)
	}
	if s.batches > 0 {
		batch = s.batchSum / time.Duration(s.batches)
	}
	s.waitSum, s.waits, s.batchSum, s.batches = 0, 0, 0, 0
	return wait, batch
}
