package app

import (
	"usher/configs"
	"usher/queue/limits"
	"usher/queue/proof"
	"usher/queue/queuehttp"
)

// tolls are what new places cost by the configuration in force.
func (a *App) tolls() queuehttp.Tolls {
	l, p := a.config().Edge.Limits, a.config().Edge.Proof
	return queuehttp.Tolls{
		Rates: limits.Rates{
			PerFan: rate(l.PerFan), PerAddress: rate(l.PerAddress), PerBlock: rate(l.PerBlock),
			PerRoom: rate(l.PerRoom), PerWaiter: rate(l.Waiting),
		},
		Calm: limits.Calm{
			PerAddress: rate(p.Free.PerAddress), PerBlock: rate(p.Free.PerBlock), PerRoom: rate(p.Free.PerRoom),
		},
		Asks: rate(l.Asks), Failures: rate(l.Failures), Proof: p.Mode,
		Price: proof.Price{Base: p.Cost.Least, Most: p.Cost.Most, Wait: p.Wait.Least, Long: p.Wait.Most},
	}
}

// guesses is how often one address may try a code; of whatever kind, so far.
func (a *App) guesses(string) limits.Rate { return rate(a.config().Edge.Limits.Guesses) }

func rate(r configs.Rate) limits.Rate { return limits.Rate{PerMinute: r.PerMinute, Burst: r.Burst} }
