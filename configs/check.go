package configs

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Roles of operators: a viewer looks, an operator also opens, tunes and closes
// rooms, the box office also refunds, a gate scans tickets and nothing else.
const (
	RoleViewer    = "viewer"
	RoleOperator  = "operator"
	RoleBoxOffice = "boxoffice"
	RoleGate      = "gate"
)

// minSecret is the shortest secret taken: 32 random bytes, however written.
const minSecret = 32

type report func(key, format string, args ...any)

// Validate checks c for a role ("" for the rules alone); the error is a
// *Problems with all of them.
func (c *Config) Validate(role string) error {
	var p Problems
	c.check(role, func(key, format string, args ...any) {
		p.list = append(p.list, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
	})
	if len(p.list) == 0 {
		return nil
	}
	p.sort()
	return &p
}

func (c *Config) check(role string, bad report) {
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		bad("log.level", "must be debug, info, warn or error, not %q", c.Log.Level)
	}
	c.checkAddresses(bad)
	c.checkNumbers(bad)
	c.checkSecrets(bad)
	c.checkOperators(bad)
	c.checkBots(bad)
	c.checkIntegrators(bad)
	c.checkStreams(bad)
	c.checkEvents(bad)
	for _, p := range c.HTTP.TrustedProxies {
		if _, err := netip.ParsePrefix(p); err != nil {
			if _, err := netip.ParseAddr(p); err != nil {
				bad("http.trustedProxies", "has %q, which is neither an address nor a CIDR", p)
			}
		}
	}
	for _, room := range sortedKeys(c.Booking.AllowedOrigins) {
		for _, o := range c.Booking.AllowedOrigins[room] {
			if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
				bad("booking.allowedOrigins", "of room %q has %q; an origin is like https://tickets.example", room, o)
			}
		}
	}
	c.checkNeeds(role, bad)
}

func (c *Config) checkAddresses(bad report) {
	for _, a := range []struct{ key, addr string }{
		{"edge.addr", c.Edge.Addr}, {"booking.addr", c.Booking.Addr},
		{"sandbox.addr", c.Sandbox.Addr}, {"admin.addr", c.Admin.Addr},
	} {
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			bad(a.key, "must be like 127.0.0.1:8080 or :8080, not %q", a.addr)
		}
	}
	for _, u := range []struct{ key, url string }{
		{"edge.publicURL", c.Edge.PublicURL}, {"booking.publicURL", c.Booking.PublicURL},
		{"sandbox.publicURL", c.Sandbox.PublicURL}, {"pass.jwksURL", c.Pass.JWKSURL},
		{"payment.url", c.Payment.URL}, {"payment.callbackURL", c.Payment.CallbackURL},
	} {
		if u.url == "" {
			continue
		}
		p, err := url.Parse(u.url)
		if err != nil || (p.Scheme != "http" && p.Scheme != "https") || p.Host == "" {
			bad(u.key, "must be an http or https address, not %q", u.url)
		} else if strings.HasSuffix(u.url, "/") || p.RawQuery != "" || p.Fragment != "" {
			bad(u.key, "must end without a slash, a query or a fragment: %q", u.url)
		}
	}
	c.checkStores(bad)
}

func (c *Config) checkStores(bad report) {
	if s := c.Postgres.URL.Reveal(); s != "" && !strings.HasPrefix(s, "postgres://") && !strings.HasPrefix(s, "postgresql://") {
		bad("postgres.url", "must begin with postgres://")
	}
	if s := c.Redis.URL.Reveal(); s != "" && !strings.HasPrefix(s, "redis://") && !strings.HasPrefix(s, "rediss://") && !strings.HasPrefix(s, "unix://") {
		bad("redis.url", "must begin with redis://, rediss:// or unix://")
	} else if c.Redis.Cluster && strings.HasPrefix(s, "unix://") {
		bad("redis.cluster", "a cluster is reached by redis:// or rediss://, not by a socket")
	}
}

func (c *Config) checkNumbers(bad report) {
	lanes := c.Booking.Lanes
	if lanes < 1 || lanes > 64 {
		lanes = 0 // reported below; what depends on it is not wrong for that
	}
	for _, n := range []struct {
		key           string
		is, low, high int
	}{
		{"booking.lanes", c.Booking.Lanes, 1, 64},
		{"booking.laneQueue", c.Booking.LaneQueue, 1, 100_000},
		{"booking.batchMax", c.Booking.BatchMax, 1, 1000},
		{"redis.poolSize", c.Redis.PoolSize, 1, 10_000},
		// The lanes keep a connection each; the rest serves reads and money.
		{"postgres.maxConns", c.Postgres.MaxConns, lanes + 4, 1000},
		{"http.concurrency", c.HTTP.Concurrency, 16, 1_000_000},
	} {
		if n.is < n.low || n.is > n.high {
			bad(n.key, "must be between %d and %d, not %d", n.low, n.high, n.is)
		}
	}
	for _, d := range []struct {
		key           string
		is, low, high time.Duration
	}{
		{"edge.claimWindow", c.Edge.ClaimWindow, time.Second, time.Hour},
		{"booking.sessionLife", c.Booking.SessionLife, time.Minute, 40 * time.Minute},
		{"booking.holdDeadline", c.Booking.HoldDeadline, 10 * time.Millisecond, 30 * time.Second},
		{"booking.sweepEvery", c.Booking.SweepEvery, 100 * time.Millisecond, time.Hour},
		{"booking.bridgeEvery", c.Booking.BridgeEvery, 50 * time.Millisecond, 4 * time.Second},
		{"postgres.statementTimeout", c.Postgres.StatementTimeout, 100 * time.Millisecond, 10 * time.Minute},
		{"payment.life", c.Payment.Life, time.Second, time.Hour},
		{"payment.holdExtension", c.Payment.HoldExtension, time.Second, time.Hour},
		{"payment.reconcileAfter", c.Payment.ReconcileAfter, time.Second, 24 * time.Hour},
		{"payment.reconcileEvery", c.Payment.ReconcileEvery, 100 * time.Millisecond, time.Hour},
		{"sandbox.lateAfter", c.Sandbox.LateAfter, 0, 24 * time.Hour},
		{"shutdown.drainDelay", c.Shutdown.DrainDelay, 0, 10 * time.Second},
		{"shutdown.timeout", c.Shutdown.Timeout, time.Second, 10 * time.Minute},
	} {
		if d.is < d.low || d.is > d.high {
			bad(d.key, "must be between %s and %s, not %s", d.low, d.high, d.is)
		}
	}
	if c.Payment.Life > c.Payment.HoldExtension {
		bad("payment.life", "must not exceed payment.holdExtension: a fan could pay for seats that are free again")
	}
}

func (c *Config) checkSecrets(bad report) {
	for i, s := range c.Edge.PlaceSecrets {
		if len(s) < minSecret {
			bad("edge.placeSecrets", "entry %d is shorter than %d characters", i+1, minSecret)
		}
	}
	for i, s := range c.Payment.Secrets {
		if len(s) < minSecret {
			bad("payment.secrets", "entry %d is shorter than %d characters", i+1, minSecret)
		}
	}
	for i, s := range c.Booking.TicketSecrets {
		if len(s) < minSecret {
			bad("booking.ticketSecrets", "entry %d is shorter than %d characters", i+1, minSecret)
		}
	}
	if s := c.Booking.SessionSecret; s != "" && len(s) < minSecret {
		bad("booking.sessionSecret", "is shorter than %d characters", minSecret)
	}
	if s := c.Payment.APIKey; s != "" && len(s) < minSecret {
		bad("payment.apiKey", "is shorter than %d characters", minSecret)
	}
	if c.Payment.Provider != "sandbox" {
		bad("payment.provider", "must be sandbox, not %q", c.Payment.Provider)
	}
}

func (c *Config) checkOperators(bad report) {
	names := map[string]bool{}
	for i, o := range c.Operators {
		if o.Name == "" || names[o.Name] {
			bad("operators", "entry %d: the name %q is empty or stands twice", i+1, o.Name)
		}
		names[o.Name] = true
		if !slices.Contains([]string{RoleViewer, RoleOperator, RoleBoxOffice, RoleGate}, o.Role) {
			bad("operators", "entry %d (%s): role must be viewer, operator, boxoffice or gate, not %q", i+1, o.Name, o.Role)
		}
		digits, ok := strings.CutPrefix(o.TokenHash, "sha256:")
		if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != 32 {
			bad("operators", "entry %d (%s): tokenHash must be sha256: and 64 hex digits", i+1, o.Name)
		}
	}
}

// checkNeeds reports what a role cannot start without.
func (c *Config) checkNeeds(role string, bad report) {
	need := func(set bool, key, why string) {
		if !set {
			bad(key, "is needed by %s: %s", role, why)
		}
	}
	edge, booking, sandbox := role == "edge", role == "booking", role == "sandbox"
	if edge || booking {
		need(c.Redis.URL != "", "redis.url", "the line is there")
	}
	if edge {
		need(len(c.Edge.PlaceSecrets) > 0, "edge.placeSecrets", "they sign the places")
		need(c.Pass.KeysFile != "", "pass.keysFile", "it signs the passes; make one with usher keys new")
	}
	if booking {
		need(c.Postgres.URL != "", "postgres.url", "the seats are there")
		need(c.Booking.SessionSecret != "", "booking.sessionSecret", "it signs the sessions")
		need(len(c.Booking.TicketSecrets) > 0, "booking.ticketSecrets", "they sign the codes on tickets")
		need(c.Edge.PublicURL != "", "edge.publicURL", "pages lead back to the waiting room")
		need(c.Pass.KeysFile != "" || c.Pass.JWKSURL != "", "pass.jwksURL", "passes are verified with its keys (or pass.keysFile)")
		need(c.Payment.URL != "", "payment.url", "payments are made there")
	}
	if booking || sandbox {
		need(c.Payment.APIKey != "", "payment.apiKey", "booking shows it to the provider")
		need(len(c.Payment.Secrets) > 0, "payment.secrets", "they sign what the provider reports")
	}
	if edge {
		need(c.Booking.PublicURL != "", "booking.publicURL", "admitted fans are sent there")
	}
}
