package queuehttp

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"usher/admission/pass"
	"usher/internal/basehttp"
	"usher/internal/pagehttp"
	"usher/queue"
	"usher/queue/proof"
	"usher/queue/returnto"
)

// callTimeout bounds one call of the line: a request waits for Redis no longer.
const callTimeout = 3 * time.Second

// Options configure a Server; Line and Keys are needed.
type Options struct {
	Line          *queue.Line
	Keys          func() pass.Ring         // asked at every mint, so that a reloaded ring counts at once
	Log           *slog.Logger             // default slog.Default()
	Now           func() time.Time         // default time.Now; decides which key signs
	PublicURL     string                   // the edge as browsers see it, no slash at the end
	BookingURL    func(room string) string // for rooms whose settings name none; may be nil
	SecureCookies bool                     // set the Secure attribute; needed behind TLS

	Tolls          func() Tolls                       // what new places cost, asked at each join; nil: nothing
	Proofs         *proof.Issuer                      // needed where Tolls may ask for proofs
	ProofMetrics   *proof.Metrics                     // default: counted for nobody
	Customers      func(room string) Customers        // whom a room knows by name, asked at each join; nil: nobody
	Returns        func(room string) []returnto.Entry // where a room's fans may go back to, and whose pages may call; nil: nowhere
	TrustedProxies []string                           // addresses or CIDRs whose X-Forwarded-For is believed

	Streams    int                   // most event streams at once; 0: none
	Registerer prometheus.Registerer // of the streams' metrics; default: nobody reads them
}

// Server answers for the line. Without Run it opens no streams.
type Server struct {
	line    *queue.Line
	opts    Options
	log     *slog.Logger
	gate    *gate
	streams *streams
	texts   roomTexts
}

// New builds the server; it starts nothing.
func New(o Options) *Server {
	if o.Line == nil || o.Keys == nil {
		panic("queuehttp: Line and Keys are needed")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{line: o.Line, opts: o, log: o.Log.With("component", "edge"), gate: newGate(o)}
	s.streams = newStreams(s, o)
	return s
}

// Register adds the routes.
func (s *Server) Register(r fiber.Router) {
	r.Get(pollRoute, s.cors(s.getPlace)) // routes are tried in this order, and nearly every request is a poll
	r.Get("/v1/rooms", s.getRooms)
	r.Get("/v1/rooms/:room", s.getRoom)
	r.Post("/v1/rooms/:room/places", s.cors(s.own(s.postPlace)))
	r.Get("/v1/rooms/:room/challenge", s.getChallenge)
	r.Get(streamRoute, s.getStream)
	r.Delete(pollRoute, s.cors(s.own(s.deletePlace)))
	r.Post("/v1/rooms/:room/place/move", s.own(s.postMove))
	r.Post("/v1/rooms/:room/pass", s.cors(s.own(s.postPass)))
	for _, path := range []string{"/v1/rooms/:room/places", pollRoute, "/v1/rooms/:room/pass"} {
		r.Options(path, s.cors(s.preflight))
	}
	r.Get("/usher.js", s.getSnippet)
	r.Get("/v1/rooms/:room/draw", s.getDraw)
	r.Get("/v1/rooms/:room/draw/entries", s.getDrawEntries)
	r.Get("/.well-known/jwks.json", s.getKeys)
	s.registerPages(r)
}

// own refuses a call that another site's page makes a visitor's browser send. Not
// sending cookies along (SameSite) is not enough: the answer to such a form would
// still set them, and replace the fan's id and place. Programs send neither Origin
// nor Sec-Fetch-Site, and no form can send a Bearer. The pages of the origins on the
// room's list are the integrator's, and may.
func (s *Server) own(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if basehttp.BearerToken(c) == "" && !s.ours(c) && !s.listed(c) {
			return errCrossSite.Detailf("Nothing was changed. A program sends no Origin, or its place token as Bearer.")
		}
		return next(c)
	}
}

// ours tells a request of our own page, or of no page, from one of another site's.
// A browser's own word goes first: a proxy in front may have changed the Host, which
// an Origin is compared with, and no page can write Sec-Fetch-Site.
func (s *Server) ours(c *fiber.Ctx) bool {
	return c.Get("Sec-Fetch-Site") == "same-origin" || pagehttp.SameOrigin(c, s.opts.PublicURL)
}

const pollRoute = "/v1/rooms/:room/place"

// Quiet reports whether the request is a poll or opens a stream, which gets no line in the access
// log unless it fails: a million fans ask every few seconds.
func Quiet(c *fiber.Ctx) bool {
	if c.Method() != fiber.MethodGet {
		return false
	}
	path := c.Path()
	return strings.HasPrefix(path, "/v1/rooms") && (strings.HasSuffix(path, "/place") || strings.HasSuffix(path, "/stream") || strings.Count(path, "/") <= 3)
}

// callContext ends a call of the line in time. The request's own context would
// not: it never ends when a client leaves, and has no deadline.
func callContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), callTimeout)
}

// room is the path's room, copied: what the line keeps outlives the request.
func room(c *fiber.Ctx) string { return strings.Clone(c.Params("room")) }
