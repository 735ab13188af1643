package queue

import (
	"github.com/prometheus/client_golang/prometheus"

	"usher/admission"
)

// valveMetrics tell where each room's valve stands and why.
type valveMetrics struct {
	rate, slots, ceilingRate, ceilingCap, deadTime *prometheus.GaugeVec // by room
	decisions                                      *prometheus.CounterVec
}

func newValveMetrics() *valveMetrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "usher", Subsystem: "valve", Name: name, Help: help}, []string{"room"})
	}
	return &valveMetrics{
		rate:        gauge("rate_per_minute", "Admissions a minute in force."),
		slots:       gauge("cap", "Fans inside at once, in force."),
		ceilingRate: gauge("ceiling_rate_per_minute", "Most admissions a minute, as the operator set it."),
		ceilingCap:  gauge("ceiling_cap", "Most fans inside at once, as the operator set it."),
		deadTime:    gauge("dead_time_seconds", "Time from an admission to its load that the valve reckons with; 0 for a fixed one."),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "usher", Subsystem: "valve", Name: "decisions_total", Help: "Decisions of adaptive valves that this edge was first with.",
		}, []string{"room", "reason"}),
	}
}

func (m *valveMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.rate, m.slots, m.ceilingRate, m.ceilingCap, m.deadTime, m.decisions}
}

func (m *valveMetrics) decided(room string, d admission.Decision) {
	m.decisions.WithLabelValues(room, string(d.Reason)).Inc()
}

func (m *valveMetrics) observe(v RoomView) {
	m.rate.WithLabelValues(v.Room).Set(float64(v.Valve.Rate))
	m.slots.WithLabelValues(v.Room).Set(float64(v.Valve.Cap))
	m.ceilingRate.WithLabelValues(v.Room).Set(float64(v.RatePerMinute))
	m.ceilingCap.WithLabelValues(v.Room).Set(float64(v.Cap))
	m.deadTime.WithLabelValues(v.Room).Set(v.Valve.DeadTime.Seconds())
	if v.Valve.Mode == Adaptive {
		for _, why := range admission.Reasons() { // from the start, so that an alert has a zero to rise from
			m.decisions.WithLabelValues(v.Room, string(why))
		}
	}
}
