package proof

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// What became of proofs and tickets, as the metric's label says.
const (
	Asked   = "asked"   // a join was told to pay
	Solved  = "solved"  // a new place was paid by a proof
	Waited  = "waited"  // … by a ticket
	Invalid = "invalid" // not a proof for this fan and room, or too old
	Used    = "used"    // accepted before
	Cheap   = "cheap"   // good, but worth less than is asked by now
	Early   = "early"   // a ticket before its time
)

// Metrics count what becomes of proofs at this edge. Rooms must be known ones.
type Metrics struct {
	total *prometheus.CounterVec
	cost  *prometheus.GaugeVec
}

// NewMetrics registers them; with reg nil nobody reads them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "usher", Subsystem: "proof", Name: "total", Help: "Proofs of work and wait tickets by outcome: asked, solved, waited, invalid, used, cheap, early.",
		}, []string{"room", "outcome"}),
		cost: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "usher", Subsystem: "proof", Name: "cost", Help: "Largest number of the challenge asked last; half of it is tried on average.",
		}, []string{"room"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.total, m.cost} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("proof: metrics: %w", err)
		}
	}
	return m, nil
}

// Count adds one outcome.
func (m *Metrics) Count(room, outcome string) { m.total.WithLabelValues(room, outcome).Inc() }

// Cost tells what was asked.
func (m *Metrics) Cost(room string, cost int) { m.cost.WithLabelValues(room).Set(float64(cost)) }
