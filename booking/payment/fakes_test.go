package payment_test

import (
	"context"
	"sync/atomic"

	"usher/booking/payment"
)

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

// silent is a provider that never answers.
type silent struct{ payment.Provider }

func (silent) Name() string { return "silent" }

func (silent) Create(ctx context.Context, _ payment.CreateRequest) (payment.Created, error) {
	<-ctx.Done()
	return payment.Created{}, ctx.Err()
}
