package bookinghttp

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/booking/gate"
	"usher/booking/payment"
)

// Options configure a Server; Office is needed, Desk where one can pay.
type Options struct {
	Office *booking.Office
	Desk   *payment.Desk
	Log    *slog.Logger
	// EdgeURL is where the waiting pages are, PublicURL where this listener is,
	// both as a browser reaches them and without a trailing slash.
	EdgeURL, PublicURL string
	// AllowedOrigins are the origins whose pages may call the API for a room; nil
	// or an empty answer allows none but this listener's own.
	AllowedOrigins func(room string) []string
	// OperatorAuth tells who bears token and whether they have role; every operator
	// has the role "viewer", which tells them from strangers.
	OperatorAuth func(token, role string) (actor string, ok bool)
	// Gate signs the codes of tickets and scans them; nil: their codes are plain, and
	// nothing scans them here.
	Gate *gate.Gate
	// SecureCookies marks the session cookie Secure; set it wherever PublicURL is https.
	SecureCookies bool
	// Timeout bounds one request's work; default 5 s.
	Timeout time.Duration
}

// Server answers the booking API and its pages.
type Server struct {
	opts   Options
	office *booking.Office
	desk   *payment.Desk
	log    *slog.Logger
	origin string // scheme and host of PublicURL, "" when unknown
}

// New builds a server; it starts nothing.
func New(o Options) (*Server, error) {
	if o.Office == nil {
		return nil, errors.New("bookinghttp: an office is needed")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	s := &Server{opts: o, office: o.Office, desk: o.Desk, log: o.Log.With("component", "booking")}
	if u, err := url.Parse(o.PublicURL); err == nil && u.Host != "" {
		s.origin = u.Scheme + "://" + u.Host
	}
	return s, nil
}

// Register adds every route to r.
func (s *Server) Register(r fiber.Router) {
	r.Use("/v1", s.cors)
	s.registerSessions(r)
	s.registerShowtimes(r)
	s.registerHolds(r)
	s.registerPayments(r)
	s.registerGate(r)
	s.registerPages(r)
}

// within gives a request a context of its own: Fiber's never ends when the
// caller leaves, and must not be kept past the handler.
func (s *Server) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.opts.Timeout)
}
