package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"
)

// Options configure a Desk. Provider and ReturnURL are needed; the rest has the
// defaults named here.
type Options struct {
	Log      *slog.Logger
	Provider Provider
	// ReturnURL is where the fan is sent after the payment page.
	ReturnURL func(bookingID string) string
	// PaymentLife is how long a payment page stays open, never past the hold;
	// default 8 min. It is shorter than the hold so that the reconciler can still
	// confirm a payment whose callback was lost.
	PaymentLife time.Duration
	// HoldExtension is how long a hold lives from its first checkout on, at least;
	// given once; default 10 min.
	HoldExtension time.Duration
	// ReconcileAfter is the age at which a payment is asked for at the provider
	// even before its page expires; default 15 min.
	ReconcileAfter time.Duration
	// ReconcileEvery is the reconciler's period, and the least time between two
	// questions about one payment; default 15 s; < 0: never.
	ReconcileEvery time.Duration
	// GiveUpAfter is the age at which a payment that the provider opened, and then
	// says it does not know, counts as unpaid; until then it stays undecided and
	// each question about it is an alarm. Default 24 h.
	GiveUpAfter time.Duration
	// ProviderTimeout bounds one call to the provider; default 10 s.
	ProviderTimeout time.Duration
	// SeatsChanged, when set, is told after the commit of seats this desk sold, gave
	// back or extended (lease: how long from now), so that maps of this process
	// show it at once: booking.Office.SeatsChanged.
	SeatsChanged func(showtimeID string, seats []string, status string, lease time.Duration)
	// EventsWritten, when set, is told after commits that may have written events:
	// outbox.Relay.Ring. The relay finds by itself what it was not told of.
	EventsWritten func()
	Registerer    prometheus.Registerer
}

func (o *Options) complete() error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("component", "payment")
	defaults := []struct {
		v *time.Duration
		d time.Duration
	}{
		{&o.PaymentLife, 8 * time.Minute},
		{&o.HoldExtension, 10 * time.Minute},
		{&o.ReconcileAfter, 15 * time.Minute},
		{&o.ReconcileEvery, 15 * time.Second},
		{&o.GiveUpAfter, 24 * time.Hour},
		{&o.ProviderTimeout, 10 * time.Second},
	}
	for _, x := range defaults {
		if *x.v == 0 {
			*x.v = x.d
		}
	}
	if o.SeatsChanged == nil {
		o.SeatsChanged = func(string, []string, string, time.Duration) {}
	}
	if o.EventsWritten == nil {
		o.EventsWritten = func() {}
	}
	var errs []error
	if o.Provider == nil {
		errs = append(errs, errors.New("a provider is needed"))
	}
	if o.ReturnURL == nil {
		errs = append(errs, errors.New("a return address is needed"))
	}
	if o.PaymentLife < 0 || o.HoldExtension < 0 || o.ReconcileAfter < 0 || o.GiveUpAfter < 0 || o.ProviderTimeout < 0 {
		errs = append(errs, errors.New("durations must be positive"))
	}
	if o.PaymentLife > o.HoldExtension {
		errs = append(errs, fmt.Errorf("a payment page (%s) must not outlive the hold's extension (%s)", o.PaymentLife, o.HoldExtension))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("payment: options: %w", err)
	}
	return nil
}

// Desk takes payments for holds and turns them into bookings. It is safe for
// concurrent use; any number of desks may work on one database.
type Desk struct {
	pool     *pgxpool.Pool
	opts     Options
	log      *slog.Logger
	provider Provider // guarded: breaker, timeout, metrics
	jobs     *river.Client[pgx.Tx]
	metrics  *metrics
}

// New builds a desk over pool; it starts nothing. Refunds are paid out and lost
// callbacks found only while some desk's Run runs.
func New(pool *pgxpool.Pool, o Options) (*Desk, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	d := &Desk{pool: pool, opts: o, log: o.Log, metrics: m}
	d.provider = guard(o.Provider, o.ProviderTimeout, m, d.log)
	if d.jobs, err = newJobs(d); err != nil {
		return nil, err
	}
	return d, nil
}

// Run works refunds and the reconciler until ctx ends; it returns nil then.
func (d *Desk) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.runJobs(ctx) })
	if d.opts.ReconcileEvery > 0 {
		g.Go(func() error { return d.reconcileLoop(ctx) })
	}
	return g.Wait()
}
