package configs

// Streams push news to fans near the head of a line, who otherwise ask.
type Streams struct {
	Max int `koanf:"max"` // at once, in one process; 0: none
}

// A descriptor each, beside those of requests: a process often gets 20,000.
func defaultStreams() Streams { return Streams{Max: 10_000} }

func (c *Config) checkStreams(bad report) {
	if n := c.Edge.Streams.Max; n < 0 || n > 1_000_000 {
		bad("edge.streams.max", "must be between 0 (none) and 1000000, not %d", n)
	}
}
