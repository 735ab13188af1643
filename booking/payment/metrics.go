package payment

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	checkouts  *prometheus.CounterVec   // outcome
	settled    *prometheus.CounterVec   // source, outcome
	calls      *prometheus.HistogramVec // call, result
	refundsDue prometheus.Gauge
	refunded   prometheus.Counter
	reconciled prometheus.Counter
	missing    prometheus.Counter
	breaker    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		checkouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "usher_payment_checkouts_total", Help: "Checkouts by how they ended.",
		}, []string{"outcome"}),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "usher_payment_settled_total", Help: "Provider outcomes applied, by who brought them and what became of the payment.",
		}, []string{"source", "outcome"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "usher_payment_provider_seconds", Help: "Time of calls to the provider.",
			Buckets: []float64{.005, .02, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"call", "result"}),
		refundsDue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "usher_payment_refunds_due", Help: "Refunds decided and not yet confirmed by the provider (whole database, as of the last reconciler round).",
		}),
		refunded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "usher_payment_refunds_done_total", Help: "Refunds the provider has confirmed to this process.",
		}),
		reconciled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "usher_payment_reconciled_total", Help: "Payments the reconciler asked the provider about.",
		}),
		missing: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "usher_payment_missing_at_provider_total", Help: "Answers of the provider that it does not know a payment it has opened. Any is an alarm.",
		}),
		breaker: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "usher_payment_breaker_open", Help: "1 while calls to the provider are not even tried.",
		}),
	}
	if r == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.checkouts, m.settled, m.calls, m.refundsDue, m.refunded, m.reconciled, m.missing, m.breaker} {
		errs = append(errs, r.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("payment: metrics: %w", err)
	}
	return m, nil
}

// observe times one provider call; result is from a closed set.
func (m *metrics) observe(call, result string, since time.Time) {
	m.calls.WithLabelValues(call, result).Observe(time.Since(since).Seconds())
}
