package app

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// httpMetrics counts what every listener answers. Labels come from closed sets:
// the route is the matched pattern, the method a known one, the status its class.
type httpMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newRegistry() (*prometheus.Registry, *httpMetrics) {
	r := prometheus.NewRegistry()
	m := &httpMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "usher_http_requests_total", Help: "Requests answered.",
		}, []string{"listener", "route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "usher_http_request_duration_seconds", Help: "Time from the request's arrival to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"listener", "route"}),
	}
	r.MustRegister(m.requests, m.duration, collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r, m
}

func (m *httpMetrics) observer(listener string) func(route, method string, status int, took time.Duration) {
	// Most requests are of one kind: polls. Its counters are found once.
	type kind struct {
		route, method string
		class         int
		requests      prometheus.Counter
		duration      prometheus.Observer
	}
	var usual atomic.Pointer[kind]
	return func(route, method string, status int, took time.Duration) {
		if k := usual.Load(); k != nil && k.class == status/100 && k.method == method && k.route == route {
			k.requests.Inc()
			k.duration.Observe(took.Seconds())
			return
		}
		switch method {
		case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		default:
			method = "other"
		}
		k := &kind{
			route: strings.Clone(route), method: strings.Clone(method), class: status / 100, // they may lie in the request
		}
		k.requests = m.requests.WithLabelValues(listener, k.route, k.method, strconv.Itoa(status/100)+"xx")
		k.duration = m.duration.WithLabelValues(listener, k.route)
		k.requests.Inc()
		k.duration.Observe(took.Seconds())
		usual.Store(k)
	}
}
