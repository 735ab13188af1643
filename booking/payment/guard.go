package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
)

// guarded puts a time limit and a circuit breaker around a provider, and nothing
// else: no retries here, for every caller has a durable way to try again (the
// fan's key, the job, the reconciler's next round).
type guarded struct {
	Provider
	timeout time.Duration
	breaker circuitbreaker.CircuitBreaker[any]
	metrics *metrics
	log     *slog.Logger
}

// The breaker opens after breakerFailures in a row and lets one call try again
// after breakerPause.
const (
	breakerFailures = 5
	breakerPause    = 5 * time.Second
)

func guard(p Provider, timeout time.Duration, m *metrics, log *slog.Logger) *guarded {
	b := circuitbreaker.NewBuilder[any]().
		WithFailureThreshold(breakerFailures).
		WithSuccessThreshold(1).
		WithDelay(breakerPause).
		// An answer is an answer, even a refusal: only silence opens the breaker, and
		// credentials that are not accepted, with which no call can succeed.
		HandleIf(func(_ any, err error) bool {
			return err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrNotKnown) && !errors.Is(err, context.Canceled)
		}).
		OnStateChanged(func(e circuitbreaker.StateChangedEvent) {
			log.Warn("provider breaker", "from", e.OldState.String(), "to", e.NewState.String())
			m.breaker.Set(0)
			if e.NewState == circuitbreaker.OpenState {
				m.breaker.Set(1)
			}
		}).Build()
	return &guarded{Provider: p, timeout: timeout, breaker: b, metrics: m, log: log}
}

// call runs f with the time limit under the breaker. Silence, an open breaker
// and a passed limit all come back as ErrProviderDown with their cause.
func call[T any](ctx context.Context, g *guarded, name string, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	start := time.Now()
	var out T
	err := failsafe.With[any](g.breaker).Run(func() (err error) {
		out, err = f(ctx)
		return err
	})
	switch {
	case err == nil:
		g.metrics.observe(name, "ok", start)
		return out, nil
	case errors.Is(err, ErrRefused), errors.Is(err, ErrNotKnown):
		g.metrics.observe(name, "refused", start)
		return out, err
	case errors.Is(err, circuitbreaker.ErrOpen):
		g.metrics.observe(name, "breaker", start)
	case errors.Is(err, ErrNotAllowed):
		g.metrics.observe(name, "not-allowed", start)
		g.log.Error("the provider does not accept our credentials; nobody can pay until they are put right", "call", name, "err", err)
	default:
		g.metrics.observe(name, "failed", start)
	}
	return out, fmt.Errorf("%w: %s: %w", ErrProviderDown, name, err)
}

func (g *guarded) Create(ctx context.Context, r CreateRequest) (Created, error) {
	return call(ctx, g, "create", func(ctx context.Context) (Created, error) { return g.Provider.Create(ctx, r) })
}

func (g *guarded) Fetch(ctx context.Context, id string) (Outcome, error) {
	return call(ctx, g, "fetch", func(ctx context.Context) (Outcome, error) { return g.Provider.Fetch(ctx, id) })
}

func (g *guarded) Expire(ctx context.Context, id string) (Outcome, error) {
	return call(ctx, g, "expire", func(ctx context.Context) (Outcome, error) { return g.Provider.Expire(ctx, id) })
}

func (g *guarded) Refund(ctx context.Context, r RefundRequest) (string, error) {
	return call(ctx, g, "refund", func(ctx context.Context) (string, error) { return g.Provider.Refund(ctx, r) })
}
