package customer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// Remote is a key set that an issuer publishes, fetched when it is needed: at first,
// when it is five minutes old (a key that was taken back goes), and for a key id that
// is not known, but then not more than once a second, so that made-up ids cost the
// issuer little. All who wait share one fetch. An answer that is none leaves the last
// good set.
type Remote struct {
	url    string
	log    *slog.Logger
	client *http.Client
	keys   atomic.Pointer[Static]
	asked  atomic.Int64 // when the last fetch ended, ns since begin; 0: never
	failed atomic.Bool  // the last fetch brought no set
	begin  time.Time
	one    singleflight.Group
}

const (
	remoteFresh   = 5 * time.Minute
	remotePause   = time.Second
	remoteTimeout = 3 * time.Second
	remoteBytes   = 1 << 20
)

// NewRemote asks nothing yet.
func NewRemote(url string, log *slog.Logger) *Remote {
	client := &http.Client{Timeout: remoteTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the key set moved: configure its own address") // a redirect may lead from https to http
	}}
	return &Remote{url: url, log: log, client: client, begin: time.Now()}
}

// Find is of Keys.
func (r *Remote) Find(kid, alg string) ([]Key, error) {
	if r.older(remoteFresh) {
		r.fetchOnce()
	}
	if found := r.find(kid, alg); len(found) > 0 {
		return found, nil
	}
	if r.older(remotePause) {
		r.fetchOnce()
	}
	found := r.find(kid, alg)
	if len(found) == 0 && r.failed.Load() { // the key may well be there: a good customer is not turned away
		return nil, fmt.Errorf("%w: %s", ErrNoKeys, r.url)
	}
	return found, nil
}

func (r *Remote) find(kid, alg string) []Key {
	if s := r.keys.Load(); s != nil {
		found, _ := s.Find(kid, alg) // has no errors
		return found
	}
	return nil
}

func (r *Remote) older(age time.Duration) bool {
	at := r.asked.Load()
	return at == 0 || time.Since(r.begin)-time.Duration(at) >= age
}

func (r *Remote) fetchOnce() {
	_, _, _ = r.one.Do("", func() (any, error) {
		keys, err := r.fetch()
		r.asked.Store(max(int64(time.Since(r.begin)), 1))
		r.failed.Store(err != nil)
		if err != nil {
			r.log.Warn("an issuer's keys cannot be fetched; the last good ones stay", "url", r.url, "err", err)
			return nil, nil
		}
		r.keys.Store(&keys)
		return nil, nil
	})
}

func (r *Remote) fetch() (Static, error) {
	ctx, cancel := context.WithTimeout(context.Background(), remoteTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", res.Status)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, remoteBytes))
	if err != nil {
		return nil, err
	}
	return ParseJWKS(data, false)
}
