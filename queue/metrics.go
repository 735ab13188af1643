package queue

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of one edge. The label room comes from the settings shipped by the
// bridge, never from a request.
type metrics struct {
	joins, leaves, invitations, missed, admissions, standbys, releases, leases *prometheus.CounterVec
	priorityCalls                                                              *prometheus.CounterVec
	recoveries, placesRestored, visitsRestored, moves                          *prometheus.CounterVec
	scriptErrors                                                               *prometheus.CounterVec
	limited                                                                    *prometheus.CounterVec // by room and bucket
	fans                                                                       *prometheus.GaugeVec   // by room and status
	priority, boardAt, ratePerMinute, slotCap, recovering                      *prometheus.GaugeVec
	batches, batched                                                           prometheus.Counter
	valve                                                                      *valveMetrics
	promises                                                                   *prometheus.CounterVec // by room and outcome
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "usher", Subsystem: "queue", Name: name, Help: help}, []string{"room"})
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "usher", Subsystem: "queue", Name: name, Help: help}, labels)
	}
	m := &metrics{
		valve: newValveMetrics(),
		promises: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "usher", Subsystem: "queue", Name: "eta_promises_total",
			Help: "A sample of the waits promised at joins, by what came: inside the range, early or late.",
		}, []string{"room", "outcome"}),
		joins:          counter("joins_total", "New places given by this edge."),
		leaves:         counter("leaves_total", "Places given up by their fans at this edge."),
		invitations:    counter("invitations_total", "Fans called by this edge's steps."),
		priorityCalls:  counter("priority_invitations_total", "Of the fans called by this edge's steps, those of the priority line."),
		missed:         counter("missed_calls_total", "Invitations that ran out, found by this edge's steps."),
		admissions:     counter("admissions_total", "Fans admitted by claims and steps of this edge."),
		standbys:       counter("standbys_total", "Called fans who claimed before there was a slot for them."),
		releases:       counter("releases_total", "Slots freed by reports this process shipped."),
		leases:         counter("leases_expired_total", "Slots that ran out their lease, found by this edge's steps."),
		recoveries:     counter("recoveries_total", "Losses of Redis' memory of a room, noticed by this edge."),
		placesRestored: counter("places_restored_total", "Forgotten places this edge put back."),
		visitsRestored: counter("visits_restored_total", "Slots made for visits that Redis did not know of."),
		moves:          counter("moves_total", "Places given to another browser by their code."),
		scriptErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "usher", Subsystem: "queue", Name: "script_errors_total", Help: "Scripts that failed or got no reply.",
		}, []string{"script"}),
		batches: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "usher", Subsystem: "queue", Name: "batches_total", Help: "Round trips that carried joins and claims together.",
		}),
		batched: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "usher", Subsystem: "queue", Name: "batched_calls_total", Help: "Joins and claims in them; what is not in one went alone, at once.",
		}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "usher", Subsystem: "limits", Name: "refused_total", Help: "New places refused by a full bucket: fan, address, block, room, waiter.",
		}, []string{"room", "bucket"}),
		fans:          gauge("fans", "Fans by the last board: waiting, called, standing_by, inside.", "room", "status"),
		priority:      gauge("priority_fans", "Of the waiting fans, those in the priority line.", "room"),
		recovering:    gauge("recovering", "1 while a line that Redis forgot is being put back.", "room"),
		boardAt:       gauge("board_timestamp_seconds", "When this edge last read the room's board, Unix time.", "room"),
		ratePerMinute: gauge("rate_per_minute", "Most admissions a minute, as set.", "room"),
		slotCap:       gauge("cap", "Most fans inside at once, as set.", "room"),
	}
	for _, c := range append(m.valve.collectors(), m.promises,
		m.joins, m.leaves, m.invitations, m.priorityCalls, m.priority, m.missed, m.admissions, m.standbys, m.releases, m.leases,
		m.recoveries, m.placesRestored, m.visitsRestored, m.moves, m.recovering,
		m.scriptErrors, m.batches, m.batched, m.limited, m.fans, m.boardAt, m.ratePerMinute, m.slotCap,
	) {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("queue: metrics: %w", err)
		}
	}
	for _, s := range allScripts {
		m.scriptErrors.WithLabelValues(s.name) // present from the start, so that an alert has a zero to rise from
	}
	return m, nil
}

// called counts what one step did: {more, leases, missed, granted, invited, …}.
func (m *metrics) called(room string, reply []any) {
	if n := number(reply, 9); n > 0 {
		m.priorityCalls.WithLabelValues(room).Add(float64(n))
	}
	for i, c := range []*prometheus.CounterVec{m.leases, m.missed, m.admissions, m.invitations} {
		if n := number(reply, i+1); n > 0 {
			c.WithLabelValues(room).Add(float64(n))
		}
	}
}

func (m *metrics) observe(b *board) {
	v := b.view
	for status, n := range map[string]int{
		"waiting": v.Waiting, "called": v.Called - v.StandingBy, "standing_by": v.StandingBy, "inside": v.Inside,
	} {
		m.fans.WithLabelValues(v.Room, status).Set(float64(n))
	}
	m.priority.WithLabelValues(v.Room).Set(float64(v.Priority))
	m.boardAt.WithLabelValues(v.Room).Set(float64(b.at.UnixNano()) / float64(time.Second))
	m.ratePerMinute.WithLabelValues(v.Room).Set(float64(v.RatePerMinute))
	on := 0.0
	if v.Recovering {
		on = 1
	}
	m.recovering.WithLabelValues(v.Room).Set(on)
	m.slotCap.WithLabelValues(v.Room).Set(float64(v.Cap))
	m.valve.observe(v)
}
