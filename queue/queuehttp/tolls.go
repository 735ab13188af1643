package queuehttp

import (
	"errors"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/queue"
	"usher/queue/limits"
	"usher/queue/proof"
)

// When a proof of work is asked for.
const (
	ProofOff    = "off"
	ProofAuto   = "auto"   // under pressure
	ProofAlways = "always" // of each new place
)

// Tolls are what new places cost; the zero value: nothing.
type Tolls struct {
	Rates    limits.Rates
	Calm     limits.Calm
	Failures limits.Rate // broken place tokens of one address; above it they are told 429
	Asks     limits.Rate // of one place, what memory cannot answer; above it, 429
	Proof    string      // ProofOff ("" too), ProofAuto or ProofAlways
	Price    proof.Price
}

// gate is what the server keeps for tolls.
type gate struct {
	tolls    func() Tolls
	proofs   *proof.Issuer
	metrics  *proof.Metrics
	failures *limits.Local
	asks     *limits.Local

	mu        sync.Mutex
	pressures map[string]pressure // of known rooms
	warned    time.Time           // that all the world seems to come from one proxy
}

func newGate(o Options) *gate {
	g := &gate{tolls: o.Tolls, proofs: o.Proofs, metrics: o.ProofMetrics, failures: limits.NewLocal(), asks: limits.NewLocal(), pressures: map[string]pressure{}}
	if g.tolls == nil {
		g.tolls = func() Tolls { return Tolls{} }
	}
	if g.proofs == nil { // then no proof is good, and none can be asked for
		tolls := g.tolls
		g.tolls = func() Tolls { t := tolls(); t.Proof = ProofOff; return t }
	}
	if g.metrics == nil {
		g.metrics, _ = proof.NewMetrics(nil) // fails only when registering
	}
	return g
}

type pressure struct {
	is float64
	at time.Time
}

// pressureLife is how long a room's last pressure prices challenges asked for in
// advance; a join that is refused tells the pressure of this very moment.
const pressureLife = 10 * time.Second

var (
	errProofRequired = basehttp.NewProblem(428, "proof-required", "A new place needs a proof of work at the moment")
	errProofInvalid  = basehttp.NewProblem(422, "proof-invalid", "The proof of work is not valid, or was used before")
	errTooMany       = basehttp.NewProblem(429, "too-many-requests", "Too many requests")
)

// attempt is one join's dealings with the toll.
type attempt struct {
	toll    *limits.Toll
	owners  []string // whom a challenge is given to
	outcome string   // of what was shown: "", Solved, Waited, Invalid or Early
	ticket  string   // shown, good, and early
	wait    time.Duration
	price   proof.Price
}

// charge finds out what a new place of this fan costs and whether what came with
// the join pays for it. Nothing is decided here about a fan who has a place: with
// a bad proof the toll only becomes one that cannot be paid.
func (s *Server) charge(c *fiber.Ctx, room string, fan queue.Fan, fresh bool, body joinBody) attempt {
	t := s.gate.tolls()
	addr := s.address(c)
	a := attempt{toll: &limits.Toll{Rates: t.Rates, Address: addr}, price: t.Price}
	if t.Proof != ProofAuto && t.Proof != ProofAlways {
		return a
	}
	owners, payer := payers(fan, fresh, addr)
	a.toll.Calm, a.owners = t.Calm, owners
	if t.Proof == ProofAlways {
		a.toll.Least = 1
	}
	paid, err := proof.Paid{}, error(nil)
	switch {
	case body.Altcha != "":
		a.outcome = proof.Solved
		if paid, err = s.gate.proofs.Verify(room, payer, body.Altcha); err == nil {
			a.toll.Covers = t.Price.Covers(paid.Cost)
		}
	case body.WaitTicket != "":
		a.outcome, a.toll.Waited = proof.Waited, true
		if paid, err = s.gate.proofs.Redeem(room, payer, body.WaitTicket); err == nil {
			a.toll.Covers = math.Inf(1)
		}
	}
	a.toll.Mark, a.toll.MarkLife = paid.Mark, paid.Life
	switch early := (*proof.TooEarlyError)(nil); {
	case errors.As(err, &early):
		a.outcome, a.ticket, a.wait, a.toll.Waited = proof.Early, body.WaitTicket, early.Wait, false
	case err != nil:
		a.outcome, a.toll.Least, a.toll.Waited = proof.Invalid, 1, false
	}
	return a
}

// payers are the names a challenge is made for, and the one a proof is shown under.
// Who has no id yet gets one with the refusal; that fan may pay, and so may a program
// of the same address block that keeps no cookies and comes without one again.
func payers(fan queue.Fan, fresh bool, addr string) (owners []string, payer string) {
	name := "fan:" + fan.ID
	if fan.ID == "" {
		name = "place:" + string(fan.Place)
	}
	if !fresh {
		return []string{name}, name
	}
	_, block := limits.Blocks(addr)
	return []string{name, "net:" + block}, "net:" + block
}

// unpaid is the problem of a join whose toll was not paid; any other error comes
// back as it is.
func (s *Server) unpaid(c *fiber.Ctx, room string, a attempt, err error) error {
	if refused := (*limits.RefusedError)(nil); errors.As(err, &refused) {
		s.suspectProxy(c, refused.Bucket)
		return errTooMany.Detailf("Too many new places for this %s; those who have one keep it. Try again after the time in Retry-After.", refused.Bucket).
			After(refused.RetryAfter)
	}
	var need *limits.ProofError
	var now float64
	switch {
	case errors.As(err, &need):
		now = need.Pressure
		s.suspectProxy(c, limits.Address)
	case errors.Is(err, limits.ErrUsed):
		a.outcome = proof.Used
		now = s.gate.pressureOf(room)
	default:
		return err
	}
	switch a.outcome {
	case "":
		s.gate.metrics.Count(room, proof.Asked)
	case proof.Solved:
		s.gate.metrics.Count(room, proof.Cheap)
	default:
		s.gate.metrics.Count(room, a.outcome)
	}
	p := errProofRequired
	if a.outcome == proof.Invalid || a.outcome == proof.Used {
		p = errProofInvalid
	} else {
		s.gate.remember(room, now)
	}
	if a.ticket == "" {
		a.wait = a.price.Patience(now)
		a.ticket = s.gate.proofs.Ticket(room, a.owners, a.wait)
	}
	return p.Detailf("Solve the challenge and join again with its solution as altcha, or wait and join again with waitTicket.").
		With("challenge", s.challenge(room, a.owners, now)).
		With("waitTicket", a.ticket).With("retryAfterMs", a.wait.Milliseconds()).After(a.wait)
}

// paid counts how a new place was paid for.
func (s *Server) paid(room string, a attempt) {
	if a.toll.Mark != "" {
		s.gate.metrics.Count(room, a.outcome)
	}
}

func (s *Server) challenge(room string, owners []string, pressure float64) proof.Challenge {
	cost := s.gate.tolls().Price.Cost(pressure)
	s.gate.metrics.Cost(room, cost)
	return s.gate.proofs.Issue(room, owners, cost)
}

// getChallenge gives a challenge out ahead of a join, as ALTCHA's widget asks for it.
func (s *Server) getChallenge(c *fiber.Ctx) error {
	name := room(c)
	if _, err := s.roomView(name); err != nil {
		return err
	}
	if s.gate.proofs == nil {
		return basehttp.ErrNotFound
	}
	fan, fresh, err := s.whoJoins(c, name)
	if err != nil {
		return err
	}
	if fresh {
		s.setCookie(c, fanCookie, fan.ID, fanCookieLife)
	}
	owners, _ := payers(fan, fresh, s.address(c))
	noStore(c)
	return c.JSON(s.challenge(name, owners, s.gate.pressureOf(name)))
}

func (g *gate) remember(room string, is float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pressures[room] = pressure{is, time.Now()}
}

// pressureOf is the room's last pressure, 1 when it is not known or long past.
func (g *gate) pressureOf(room string) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.pressures[room]; time.Since(p.at) < pressureLife {
		return p.is
	}
	return 1
}

// address is the caller's, by X-Forwarded-For only where a trusted proxy wrote it.
func (s *Server) address(c *fiber.Ctx) string { return basehttp.ClientIP(c, s.opts.TrustedProxies) }

// ask charges a call of the store to the fan's place; the problem too-many-requests, and
// no call, when it asks too often. One place near the head could keep Redis busy
// otherwise. Each edge counts for itself.
func (s *Server) ask(room string, fan queue.Fan) error {
	t := s.gate.tolls()
	if t.Asks.PerMinute <= 0 {
		return nil
	}
	if wait := s.gate.asks.Allow(room+" "+s.line.PlaceID(room, fan), t.Asks, time.Now()); wait > 0 {
		return errTooMany.Detailf("This place asks too often. It is kept.").After(wait)
	}
	return nil
}

// brokenToken answers a Bearer that is none. A flood of them from one address is
// told to slow down; it costs no call of the store, and good tokens of the same
// address are served all the while.
func (s *Server) brokenToken(c *fiber.Ctx) error {
	if refused := s.tooManyFailures(c, "place tokens"); refused != nil {
		return refused
	}
	return errTokenInvalid
}

// suspectProxy warns, once in a while, when limits seem to count a proxy instead of
// the fans behind it: everybody would share its address and its limit.
func (s *Server) suspectProxy(c *fiber.Ctx, bucket string) {
	if bucket != limits.Address && bucket != limits.Block || c.Get(fiber.HeaderXForwardedFor) == "" {
		return
	}
	peer, err := netip.ParseAddr(c.Context().RemoteIP().String())
	if err != nil || s.address(c) != peer.String() || !(peer.IsPrivate() || peer.IsLoopback()) {
		return
	}
	s.gate.mu.Lock()
	due := time.Since(s.gate.warned) > time.Minute
	if due {
		s.gate.warned = time.Now()
	}
	s.gate.mu.Unlock()
	if due {
		s.log.Warn("joins come by a proxy that is not trusted, so all of its fans share the limits of one address; add it to http.trustedProxies", "peer", peer.String())
	}
}
