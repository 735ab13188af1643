package sandboxhttp

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
)

// Options configure a Server. APIKey and Secret are needed.
type Options struct {
	Log    *slog.Logger
	APIKey string // what the merchant sends as Bearer
	Secret []byte // signs callbacks; at least 32 bytes
	// PublicURL is where a browser reaches this server, without a trailing slash;
	// "": the address under which the merchant called.
	PublicURL string
	Merchant  string // shown on the page; default "Usher"
	// LateBy is how long after the payment's expiry a late payment is taken;
	// default 3 min, so that a hold of the default extension is over by then.
	LateBy time.Duration
	// LateAfter, when set, counts from the choice instead: for demonstrations.
	LateAfter time.Duration
	// DeliverAttempts bounds the deliveries of one callback; default 12.
	DeliverAttempts int
	// DeliverPause is the pause after the first failed delivery, doubled after each
	// more up to 64 times; default 500 ms.
	DeliverPause time.Duration
	// File keeps the state over a restart; "": memory only.
	File string
	HTTP *http.Client // for deliveries; default one with a 30 s limit
	Now  func() time.Time
}

func (o *Options) complete() error {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("component", "sandbox")
	if o.Merchant == "" {
		o.Merchant = "Usher"
	}
	if o.LateBy == 0 {
		o.LateBy = 3 * time.Minute
	}
	if o.DeliverAttempts == 0 {
		o.DeliverAttempts = 12
	}
	if o.DeliverPause == 0 {
		o.DeliverPause = 500 * time.Millisecond
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: 30 * time.Second}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.PublicURL = strings.TrimRight(o.PublicURL, "/")
	var errs []error
	if o.APIKey == "" {
		errs = append(errs, errors.New("an API key is needed"))
	}
	if len(o.Secret) < 32 {
		errs = append(errs, errors.New("the callback secret must have at least 32 bytes"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sandboxhttp: options: %w", err)
	}
	return nil
}

// Server is the provider.
type Server struct {
	opts  Options
	log   *slog.Logger
	pages *pages
	book  *book

	mu      sync.Mutex
	backlog []delivery    // asked for and not started
	wake    chan struct{} // there is a backlog
}

// New builds a server and reads Options.File; it starts nothing.
func New(o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	p, err := newPages()
	if err != nil {
		return nil, err
	}
	b, err := openBook(o.File)
	if err != nil {
		return nil, err
	}
	return &Server{opts: o, log: o.Log, pages: p, book: b, wake: make(chan struct{}, 1)}, nil
}

// Register adds the provider's routes.
func (s *Server) Register(r fiber.Router) {
	api := r.Group("/v1", s.auth)
	api.Post("/payments", s.create)
	api.Get("/payments/:id", s.get)
	api.Post("/payments/:id/expire", s.expire)
	api.Post("/payments/:id/refunds", s.refund)
	r.Get("/pay/:id", s.payPage)
	r.Post("/pay/:id", s.pay)
	r.Get("/static/:file", s.static)
}

func (s *Server) auth(c *fiber.Ctx) error {
	if subtle.ConstantTimeCompare([]byte(basehttp.BearerToken(c)), []byte(s.opts.APIKey)) != 1 {
		return basehttp.ErrUnauthorized
	}
	return c.Next()
}

// Run delivers callbacks until ctx ends, beginning with those that were open when
// the state was last written; then it closes the state's file.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	var under sync.Map // deliveries under way
	for _, d := range s.undelivered() {
		s.deliver(d)
	}
	for ctx.Err() == nil {
		s.mu.Lock()
		work := s.backlog
		s.backlog = nil
		s.mu.Unlock()
		for _, d := range work {
			// A choice made while Run begins is found twice: once in the state, once
			// in the backlog.
			if _, twice := under.LoadOrStore(d, true); !twice {
				wg.Go(func() {
					s.work(ctx, d)
					under.Delete(d)
				})
			}
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		}
	}
	wg.Wait()
	return s.book.close()
}
