package app

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"golang.org/x/sync/singleflight"

	"usher/admission/pass"
)

// published is the keys an edge publishes, for a booking process that is given
// no key file. Decisions, against keyfunc's refresh that stood here first:
//
//   - A key id that is not known is looked for at once, by one fetch that every
//     waiting pass shares. A rate limiter in its place turned away all but the
//     first fan of a fresh key.
//   - After a fetch nobody asks again for a second, so that made-up ids cost one
//     request a second, and cannot keep a new key waiting longer.
//   - An answer without a usable key, or no answer, leaves the last good set.
type published struct {
	url    string
	log    *slog.Logger
	client *http.Client
	keys   atomic.Pointer[map[string]ed25519.PublicKey]
	last   atomic.Int64 // when the last fetch ended, in nanoseconds since begin
	failed atomic.Bool  // the last fetch did not bring a set
	begin  time.Time
	one    singleflight.Group
	first  chan struct{} // closed with the first good set
}

const (
	jwksRefresh  = 30 * time.Second       // in the background: retired keys go
	jwksRetry    = 500 * time.Millisecond // until the first set is there
	jwksTimeout  = 3 * time.Second        // of one fetch
	jwksPause    = time.Second            // between fetches for unknown ids
	jwksPatience = 10 * time.Second       // how long a start waits for the first set
	jwksBytes    = 1 << 20
)

func newPublished(url string, log *slog.Logger) *published {
	p := &published{url: url, log: log, client: &http.Client{Timeout: jwksTimeout}, begin: time.Now(), first: make(chan struct{})}
	p.last.Store(-int64(jwksPause))
	p.keys.Store(&map[string]ed25519.PublicKey{})
	return p
}

// find is a pass.KeySource.
func (p *published) find(kid string) (ed25519.PublicKey, error) {
	if k, ok := (*p.keys.Load())[kid]; ok {
		return k, nil
	}
	_, _, _ = p.one.Do("", func() (any, error) {
		if time.Since(p.begin)-time.Duration(p.last.Load()) >= jwksPause {
			p.refresh(context.Background())
		}
		return nil, nil
	})
	if k, ok := (*p.keys.Load())[kid]; ok {
		return k, nil
	}
	if p.failed.Load() { // the key may well be there: a fan with a good pass is not turned away
		return nil, fmt.Errorf("%w: %s", pass.ErrNoKeys, p.url)
	}
	return nil, fmt.Errorf("no key %.20q at %s", kid, p.url)
}

// run keeps the set fresh until ctx ends.
func (p *published) run(ctx context.Context) error {
	defer p.client.CloseIdleConnections()
	for {
		wait := jwksRefresh
		if _, _, _ = p.one.Do("", func() (any, error) { p.refresh(ctx); return nil, nil }); len(*p.keys.Load()) == 0 {
			wait = jwksRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// await waits for the first set, but not for ever: an edge that is down must not
// keep those already inside from paying.
func (p *published) await(most time.Duration) {
	select {
	case <-p.first:
	case <-time.After(most):
		p.log.Warn("starting without the published keys; no pass is taken until they can be fetched", "url", p.url)
	}
}

func (p *published) refresh(ctx context.Context) {
	keys, err := p.fetch(ctx)
	p.last.Store(int64(time.Since(p.begin)))
	p.failed.Store(err != nil)
	if err != nil {
		if ctx.Err() == nil {
			p.log.Warn("the published keys cannot be fetched; the last good ones stay", "url", p.url, "err", err)
		}
		return
	}
	if old := p.keys.Swap(&keys); len(*old) == 0 {
		close(p.first) // refresh runs one at a time
	}
}

func (p *published) fetch(ctx context.Context) (map[string]ed25519.PublicKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return nil, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", res.Status)
	}
	var set jwkset.JWKSMarshal
	if err := json.NewDecoder(io.LimitReader(res.Body, jwksBytes)).Decode(&set); err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, m := range set.Keys {
		k, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil {
			continue // a kind of key we do not know, beside those we do
		}
		if pub, ok := k.Key().(ed25519.PublicKey); ok && m.KID != "" {
			keys[m.KID] = pub
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no Ed25519 key in the answer")
	}
	return keys, nil
}
