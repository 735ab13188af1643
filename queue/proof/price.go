package proof

import (
	"math"
	"time"
)

// Price turns pressure into work and into time.
type Price struct {
	Base int           // largest number at pressure 1: half of it is tried on average
	Most int           // … and at the worst
	Wait time.Duration // of those who cannot compute, at pressure 1
	Long time.Duration // … and at the worst
}

// DefaultPrice is made for phones of 100,000 hashes a second in a browser: half a
// second on average and one at worst in calm pressure, 16 s at the very worst.
var DefaultPrice = Price{Base: 100_000, Most: 1_600_000, Wait: 15 * time.Second, Long: 2 * time.Minute}

// slack is how much pressure may have risen since a challenge was given out.
const slack = 2

// Cost is the largest number of a challenge at a pressure (limits.ProofError):
// proportional to it, between Base and Most, and never falling as pressure rises.
func (p Price) Cost(pressure float64) int {
	return int(grow(pressure, float64(p.Base), float64(p.Most)))
}

// Covers is the pressure that a proof of a cost pays for. One of Most pays for any.
func (p Price) Covers(cost int) float64 {
	if cost >= p.Most {
		return math.Inf(1)
	}
	return slack * float64(cost) / float64(max(1, p.Base))
}

// Patience is how long whoever does not compute waits at a pressure.
func (p Price) Patience(pressure float64) time.Duration {
	return time.Duration(grow(pressure, float64(p.Wait), float64(p.Long))).Round(time.Second)
}

func grow(pressure, base, most float64) float64 {
	if !(pressure > 1) { // NaN too
		return min(base, most)
	}
	return min(base*pressure, most)
}
