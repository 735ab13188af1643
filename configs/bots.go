package configs

import (
	"slices"
	"time"
)

// Rate is what a bucket lets through. A perMinute of 0 is no limit.
type Rate struct {
	PerMinute int `koanf:"perMinute" live:"yes"`
	Burst     int `koanf:"burst" live:"yes"` // at once
}

// Limits refuse new places, and who asks too often (429). No place is lost by them.
type Limits struct {
	PerFan     Rate `koanf:"perFan"`     // leaving and joining again
	PerAddress Rate `koanf:"perAddress"` // an IPv4 address, an IPv6 /64
	PerBlock   Rate `koanf:"perBlock"`   // an IPv4 /24, an IPv6 /48
	PerRoom    Rate `koanf:"perRoom"`    // all together
	Waiting    Rate `koanf:"waiting"`    // of an address, places that were waited for instead of paid
	Asks       Rate `koanf:"asks"`       // of a place at one edge, calls that reach Redis: claims, looks near the head, joins again
	Failures   Rate `koanf:"failures"`   // of an address, broken place tokens
	Guesses    Rate `koanf:"guesses"`    // of an address, codes that move a place, and parts of a draw's list; a block has ten times that
}

// Proof asks for a proof of work with a new place.
type Proof struct {
	Mode string `koanf:"mode" live:"yes"` // off, auto (under pressure) or always
	Free Free   `koanf:"free"`
	Cost Cost   `koanf:"cost"`
	Wait Wait   `koanf:"wait"`
}

// Free is what needs no proof in mode auto; beyond it there is pressure.
type Free struct {
	PerAddress Rate `koanf:"perAddress"`
	PerBlock   Rate `koanf:"perBlock"`
	PerRoom    Rate `koanf:"perRoom"`
}

// Cost bounds the largest number of a challenge; half of it is tried on average.
type Cost struct {
	Least int `koanf:"least" live:"yes"`
	Most  int `koanf:"most" live:"yes"`
}

// Wait bounds how long those wait who do not compute.
type Wait struct {
	Least time.Duration `koanf:"least" live:"yes"`
	Most  time.Duration `koanf:"most" live:"yes"`
}

func defaultLimits() Limits {
	return Limits{
		PerFan: Rate{6, 10}, PerAddress: Rate{1200, 3000}, PerBlock: Rate{6000, 15_000}, PerRoom: Rate{1_800_000, 60_000},
		Waiting: Rate{60, 120}, Asks: Rate{240, 240}, Failures: Rate{120, 240}, Guesses: Rate{30, 30},
	}
}

func defaultProof() Proof {
	return Proof{
		Mode: "auto",
		Free: Free{PerAddress: Rate{20, 20}, PerBlock: Rate{120, 240}, PerRoom: Rate{300_000, 100_000}},
		Cost: Cost{Least: 100_000, Most: 1_600_000},
		Wait: Wait{Least: 15 * time.Second, Most: 2 * time.Minute},
	}
}

func (c *Config) checkBots(bad report) {
	l, p := c.Edge.Limits, c.Edge.Proof
	for _, r := range []struct {
		key string
		is  Rate
	}{
		{"edge.limits.perFan", l.PerFan}, {"edge.limits.perAddress", l.PerAddress}, {"edge.limits.perBlock", l.PerBlock},
		{"edge.limits.perRoom", l.PerRoom}, {"edge.limits.waiting", l.Waiting}, {"edge.limits.asks", l.Asks}, {"edge.limits.failures", l.Failures},
		{"edge.limits.guesses", l.Guesses}, {"edge.proof.free.perAddress", p.Free.PerAddress},
		{"edge.proof.free.perBlock", p.Free.PerBlock}, {"edge.proof.free.perRoom", p.Free.PerRoom},
	} {
		// A spacing below ten µs would be lost in the store's whole ones.
		if r.is.PerMinute < 0 || r.is.PerMinute > 6_000_000 {
			bad(r.key+".perMinute", "must be between 0 (no limit) and 6000000, not %d", r.is.PerMinute)
		}
		if r.is.Burst < 0 || r.is.Burst > 10_000_000 {
			bad(r.key+".burst", "must be between 0 and 10000000, not %d", r.is.Burst)
		}
	}
	if !slices.Contains([]string{"off", "auto", "always"}, p.Mode) {
		bad("edge.proof.mode", "must be off, auto or always, not %q", p.Mode)
	}
	if p.Cost.Least < 1 || p.Cost.Least > 10_000_000 {
		bad("edge.proof.cost.least", "must be between 1 and 10000000, not %d", p.Cost.Least)
	}
	if p.Cost.Most < p.Cost.Least || p.Cost.Most > 10_000_000 {
		bad("edge.proof.cost.most", "must be between edge.proof.cost.least and 10000000, not %d", p.Cost.Most)
	}
	if p.Wait.Least < time.Second || p.Wait.Least > 10*time.Minute {
		bad("edge.proof.wait.least", "must be between 1s and 10m0s, not %s", p.Wait.Least)
	}
	if p.Wait.Most < p.Wait.Least || p.Wait.Most > 10*time.Minute {
		bad("edge.proof.wait.most", "must be between edge.proof.wait.least and 10m0s, not %s", p.Wait.Most)
	}
}
