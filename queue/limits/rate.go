package limits

import "time"

// Rate is what a bucket lets through: Burst at once, and PerMinute in the long
// run. A PerMinute of 0 is no limit.
type Rate struct {
	PerMinute int
	Burst     int // ≥ 1 where PerMinute is set
}

// Rates refuse new places of a room, one bucket each; zero ones refuse nothing.
type Rates struct {
	PerFan     Rate // one fan who left and joins again
	PerAddress Rate // an IPv4 address, an IPv6 /64
	PerBlock   Rate // an IPv4 /24, an IPv6 /48
	PerRoom    Rate // all together: protects Redis
	PerWaiter  Rate // one address, of places that were waited for instead of paid
}

// Calm is what comes without a proof of work. Above Burst a bucket is under
// pressure; it recovers by PerMinute. Zero ones are never under pressure.
type Calm struct {
	PerAddress Rate
	PerBlock   Rate
	PerRoom    Rate
}

// spacing is the µs between two cells, 0 for no limit.
func (r Rate) spacing() float64 {
	if r.PerMinute <= 0 {
		return 0
	}
	return float64(time.Minute.Microseconds()) / float64(r.PerMinute)
}

// depth is how far ahead of now a bucket may be filled, in µs.
func (r Rate) depth() float64 { return r.spacing() * float64(max(1, r.Burst)) }

// freeDepth is the depth above which a calm bucket is under pressure.
func (r Rate) freeDepth() float64 { return r.spacing() * float64(max(0, r.Burst)) }
