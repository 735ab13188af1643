package payment

import "context"

// Reconcile is one round of the reconciler.
func (d *Desk) Reconcile(ctx context.Context) error { return d.reconcileOnce(ctx) }

// Statements are every SQL text of the package.
func Statements() map[string]string { return statements }

// Share is the split of a booking's amount over its tickets.
func Share(total int64, weights []int64) []int64 { return share(total, weights) }
