package app

import (
	"strconv"
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
	return func(route, method string, status int, took time.Duration) {
		switch method {
		case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		default:
			method = "other"
		}
		m.requests.WithLabelValues(listener, route, method, strconv.Itoa(status/100)+"xx").Inc()
		m.duration.WithLabelValues(listener, route).Observe(took.Seconds())
	}
}
