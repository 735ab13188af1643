package payment_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"usher/booking/payment"
	"usher/booking/payment/sandbox"
)

// refusing is the sandbox's client before a server that answers status to everything.
func refusing(t *testing.T, status int) *sandbox.Client {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(srv.Close)
	c, err := sandbox.New(sandbox.Options{BaseURL: srv.URL, APIKey: "old", Secrets: [][]byte{secret()}, CallbackURL: srv.URL})
	must(t, err)
	return c
}

// metric is the value of a counter without labels.
func metric(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := reg.Gather()
	must(t, err)
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// counting counts calls and lets a test come between.
type counting struct {
	payment.Provider
	creates, refunds atomic.Int64
	before           func()                      // each Create, before the provider hears of it
	after            func(payment.Created) error // each Create, after it has answered
	beforeRefund     func() error
	slowRefund       func(context.Context) error
}

func (c *counting) Create(ctx context.Context, r payment.CreateRequest) (payment.Created, error) {
	c.creates.Add(1)
	if c.before != nil {
		c.before()
	}
	out, err := c.Provider.Create(ctx, r)
	if err == nil && c.after != nil {
		err = c.after(out)
	}
	return out, err
}

func (c *counting) Refund(ctx context.Context, r payment.RefundRequest) (string, error) {
	c.refunds.Add(1)
	if c.beforeRefund != nil {
		if err := c.beforeRefund(); err != nil {
			return "", err
		}
	}
	if c.slowRefund != nil {
		if err := c.slowRefund(ctx); err != nil {
			return "", err
		}
	}
	return c.Provider.Refund(ctx, r)
}

// answering stands for a provider that gives other answers than the sandbox.
type answering struct {
	payment.Provider
	create        func(payment.CreateRequest) (payment.Created, error)
	fetch, expire func(id string) (payment.Outcome, error)
}

func (a *answering) Create(ctx context.Context, r payment.CreateRequest) (payment.Created, error) {
	if a.create != nil {
		return a.create(r)
	}
	return a.Provider.Create(ctx, r)
}

func (a *answering) Fetch(ctx context.Context, id string) (payment.Outcome, error) {
	if a.fetch != nil {
		return a.fetch(id)
	}
	return a.Provider.Fetch(ctx, id)
}

func (a *answering) Expire(ctx context.Context, id string) (payment.Outcome, error) {
	if a.expire != nil {
		return a.expire(id)
	}
	return a.Provider.Expire(ctx, id)
}

// answers puts a into the shop's way to the provider.
func answers(a *answering) func(*setup) {
	return func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { a.Provider = p; return a }
	}
}

// silent is a provider that never answers.
type silent struct{ payment.Provider }

func (silent) Name() string { return "silent" }

func (silent) Create(ctx context.Context, _ payment.CreateRequest) (payment.Created, error) {
	<-ctx.Done()
	return payment.Created{}, ctx.Err()
}
