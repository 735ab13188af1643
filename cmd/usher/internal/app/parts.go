package app

import (
	"context"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/admission/pass"
	"usher/booking"
	"usher/booking/bookinghttp"
	"usher/booking/gate"
	"usher/booking/outbox"
	"usher/booking/outbox/kafkasink"
	"usher/booking/payment"
	"usher/booking/payment/sandbox"
	"usher/booking/payment/sandboxhttp"
	"usher/configs"
	"usher/queue"
	"usher/queue/proof"
	"usher/queue/queuehttp"
)

// quiet names the requests of a listener that get no line in the log while they
// succeed: polls, probes, scrapes and files.
func quiet(listener string) func(c *fiber.Ctx) bool {
	return func(c *fiber.Ctx) bool {
		path := c.Path()
		switch {
		case strings.HasPrefix(path, "/assets/"), listener == "edge" && path == "/usher.js", listener == "sandbox" && strings.HasPrefix(path, "/static/"):
			return true
		case listener == "edge":
			return queuehttp.Quiet(c)
		case listener == "booking":
			return c.Method() == fiber.MethodGet && strings.HasSuffix(path, "/seats")
		case listener == "admin":
			return path == "/healthz" || path == "/readyz" || path == "/metrics"
		}
		return false
	}
}

func (a *App) buildEdge() error {
	c := a.config()
	keys, err := a.openKeys()
	if err != nil {
		return err
	}
	signers := newSigners(a.rdb, bytesOf(c.Edge.PlaceSecrets), a.log)
	if err := signers.check(context.Background()); err != nil {
		return err
	}
	a.spawn("place signers", signers.run)
	a.spawn("pass signer", func(ctx context.Context) error { return tellPasses(ctx, a.rdb, keys.get, signerEvery) })
	line, err := queue.New(a.rdb, queue.Options{
		Log: a.log, PlaceSecrets: bytesOf(c.Edge.PlaceSecrets), ClaimWindow: c.Edge.ClaimWindow, Registerer: a.registry,
		Guesses: a.guesses,
	})
	if err != nil {
		return err
	}
	proofs, err := proof.NewMetrics(a.registry)
	if err != nil {
		return err
	}
	bookingURL := a.urlOf("booking", c.Booking.PublicURL)
	integrators := newIntegrators(a.config, a.log)
	edge := queuehttp.New(queuehttp.Options{
		Line: line, Keys: keys.get, Log: a.log, PublicURL: a.urlOf("edge", c.Edge.PublicURL),
		BookingURL: func(string) string { return bookingURL }, SecureCookies: c.Edge.SecureCookies,
		Tolls: a.tolls, Proofs: proof.New(bytesOf(c.Edge.PlaceSecrets)), ProofMetrics: proofs, TrustedProxies: c.HTTP.TrustedProxies,
		Customers: integrators.customersOf, Returns: integrators.returnsOf,
		Streams: c.Edge.Streams.Max, Registerer: a.registry,
	})
	edge.Register(a.servers["edge"].App)
	a.servers["edge"].Express(edge.Express)
	a.leave = edge.Drain
	a.spawn("line", line.Run)
	a.spawn("streams", edge.Run)
	return nil
}

func (a *App) buildBooking() error {
	c := a.config()
	keys, err := a.passKeys()
	if err != nil {
		return err
	}
	verifier := pass.NewVerifier(keys, nil)
	if a.rdb != nil {
		check := &passCheck{rdb: a.rdb, keys: keys, log: a.log}
		check.look(context.Background())
		a.passes.Store(check) // the admin listener asks already
		a.spawn("pass check", check.run)
	}
	a.office, err = booking.New(a.pool, booking.Options{
		Log: a.log, Verifier: verifier, SessionSecret: []byte(c.Booking.SessionSecret.Reveal()),
		Lanes: c.Booking.Lanes, LaneQueue: c.Booking.LaneQueue, BatchMax: c.Booking.BatchMax,
		HoldDeadline: c.Booking.HoldDeadline, SweepEvery: c.Booking.SweepEvery, SessionLife: c.Booking.SessionLife,
		Registerer: a.registry,
	})
	if err != nil {
		return err
	}
	publicURL := a.urlOf("booking", c.Booking.PublicURL)
	written, err := a.buildEvents()
	if err != nil {
		return err
	}
	if err := a.buildDesk(publicURL, written); err != nil {
		return err
	}
	signer, err := gate.NewSigner(bytesOf(c.Booking.TicketSecrets))
	if err != nil {
		return err
	}
	s, err := bookinghttp.New(bookinghttp.Options{
		Office: a.office, Desk: a.desk, Log: a.log, Gate: gate.New(a.pool, signer),
		EdgeURL: a.urlOf("edge", c.Edge.PublicURL), PublicURL: publicURL,
		AllowedOrigins: a.allowedOrigins, OperatorAuth: a.operator, SecureCookies: c.Booking.SecureCookies,
	})
	if err != nil {
		return err
	}
	s.Register(a.servers["booking"].App)
	a.spawn("office", a.office.Run)
	a.spawn("payment desk", a.desk.Run)
	return nil
}

func (a *App) buildDesk(publicURL string, written func()) error {
	c := a.config()
	callback := c.Payment.CallbackURL
	if callback == "" {
		callback = publicURL + "/v1/payments/callback"
	}
	provider, err := sandbox.New(sandbox.Options{
		BaseURL: a.urlOf("sandbox", c.Payment.URL), APIKey: c.Payment.APIKey.Reveal(),
		Secrets: bytesOf(c.Payment.Secrets), CallbackURL: callback,
	})
	if err != nil {
		return err
	}
	a.desk, err = payment.New(a.pool, payment.Options{
		Log: a.log, Provider: provider,
		ReturnURL:   func(bookingID string) string { return publicURL + "/bookings/" + bookingID },
		PaymentLife: c.Payment.Life, HoldExtension: c.Payment.HoldExtension,
		ReconcileAfter: c.Payment.ReconcileAfter, ReconcileEvery: c.Payment.ReconcileEvery,
		SeatsChanged: a.office.SeatsChanged, EventsWritten: written, Registerer: a.registry,
	})
	return err
}

// buildEvents has the events of bookings sent where the configuration says, and returns
// how to tell that one was written.
func (a *App) buildEvents() (written func(), err error) {
	c := a.config().Booking.Events
	var sink outbox.Sink
	switch {
	case len(c.Brokers) > 0:
		sink, err = kafkasink.New(kafkasink.Options{
			Brokers: c.Brokers, Topic: c.Topic, TLS: c.TLS, Username: c.Username, Password: c.Password.Reveal(), Mechanism: c.Mechanism,
		})
	case c.File != "":
		sink, err = outbox.OpenFile(c.File)
	default:
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	a.teardown.push("events", func(context.Context) error { sink.Close(); return nil })
	relay, err := outbox.NewRelay(a.pool, outbox.RelayOptions{Log: a.log, Sink: sink, Registerer: a.registry})
	if err != nil {
		return nil, err
	}
	a.spawn("events", relay.Run)
	return relay.Ring, nil
}

func (a *App) buildSandbox() error {
	c := a.config()
	s, err := sandboxhttp.New(sandboxhttp.Options{
		Log: a.log, APIKey: c.Payment.APIKey.Reveal(), Secret: []byte(c.Payment.Secrets[0].Reveal()),
		PublicURL: a.urlOf("sandbox", c.Sandbox.PublicURL), File: c.Sandbox.StateFile, LateAfter: c.Sandbox.LateAfter,
	})
	if err != nil {
		return err
	}
	s.Register(a.servers["sandbox"].App)
	a.spawn("sandbox deliveries", s.Run)
	return nil
}

// allowedOrigins answers from the configuration in force: the room's own list
// and the one for every room. Of no room ("") it answers every list: a preflight
// bears no session and so names no room, and the request behind it is checked
// against its own.
func (a *App) allowedOrigins(room string) []string {
	all := a.config().Booking.AllowedOrigins
	if room == "" {
		var union []string
		for _, list := range all {
			union = append(union, list...)
		}
		slices.Sort(union)
		return slices.Compact(union)
	}
	return append(append([]string(nil), all[room]...), all["*"]...)
}

func bytesOf(secrets []configs.Secret) [][]byte {
	out := make([][]byte, len(secrets))
	for i, s := range secrets {
		out[i] = []byte(s.Reveal())
	}
	return out
}
