package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"golang.org/x/time/rate"

	"usher/admission/pass"
)

// keyring is the pass keys of a file, read again when the file changes: a
// rotation needs no restart. A file that cannot be read, or holds a broken ring,
// changes nothing.
type keyring struct {
	path string
	log  *slog.Logger
	data []byte
	ring atomic.Pointer[pass.Ring]
}

func openKeyring(path string, log *slog.Logger) (*keyring, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("app: pass keys: %w", err)
	}
	r, err := pass.ParseRing(data)
	if err != nil {
		return nil, fmt.Errorf("app: pass keys in %s: %w", path, err)
	}
	k := &keyring{path: path, log: log, data: data}
	k.ring.Store(&r)
	return k, nil
}

func (k *keyring) get() pass.Ring { return *k.ring.Load() }

func (k *keyring) watch(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			k.reload()
		}
	}
}

func (k *keyring) reload() {
	data, err := os.ReadFile(k.path)
	if err == nil && bytes.Equal(data, k.data) {
		return
	}
	var r pass.Ring
	if err == nil {
		k.data = data // a bad file is reported once, not each time it is looked at
		r, err = pass.ParseRing(data)
	}
	if err != nil {
		k.log.Error("the pass keys cannot be read again; the old ones stay", "file", k.path, "err", err)
		return
	}
	k.ring.Store(&r)
	k.log.Info("pass keys reloaded", "keys", len(r.Keys()))
}

// openKeys opens the role's key file once, for whichever part asks first.
func (a *App) openKeys() (*keyring, error) {
	if a.keys != nil {
		return a.keys, nil
	}
	k, err := openKeyring(a.config().Pass.KeysFile, a.log)
	if err != nil {
		return nil, err
	}
	a.keys = k
	a.spawn("pass keys watch", func(ctx context.Context) error { return k.watch(ctx, 2*time.Second) })
	return k, nil
}

// verifier checks passes by the key file when there is one, else by the edge's
// published keys.
func (a *App) verifier() (*pass.Verifier, error) {
	if a.config().Pass.KeysFile != "" {
		k, err := a.openKeys()
		if err != nil {
			return nil, err
		}
		return pass.NewVerifier(pass.RingSource(k.get, time.Now), nil), nil
	}
	source, stop, err := jwksSource(a.config().Pass.JWKSURL, jwksRefresh, a.log)
	if err != nil {
		return nil, err
	}
	a.teardown.push("published keys", func(context.Context) error { stop(); return nil })
	return pass.NewVerifier(source, nil), nil
}

const (
	jwksRefresh = 30 * time.Second
	jwksTimeout = time.Second
)

// jwksSource finds keys in a published set. The set is fetched again in the
// background, and at once for a key id it does not know, at most once a second:
// the library's own default of once in five minutes lets one made-up id keep
// every pass of a new key waiting. The last good set stays while the edge is away.
func jwksSource(url string, refresh time.Duration, log *slog.Logger) (pass.KeySource, func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	startWithoutEdge := true
	set, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{url}, keyfunc.Override{
		HTTPTimeout: jwksTimeout, RefreshInterval: refresh, NoErrorReturnFirstHTTPReq: &startWithoutEdge,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(time.Second), 1), RateLimitWaitMax: jwksTimeout,
		RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
			return func(_ context.Context, err error) {
				log.Warn("the published keys cannot be fetched; the last good ones stay", "url", u, "err", err)
			}
		},
	})
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("app: published keys at %s: %w", url, err)
	}
	source := func(kid string) (ed25519.PublicKey, error) {
		key, err := set.Storage().KeyRead(ctx, kid)
		if err != nil {
			return nil, fmt.Errorf("no key %.20q: %w", kid, err)
		}
		pub, ok := key.Key().(ed25519.PublicKey)
		if !ok {
			return nil, errors.New("not an Ed25519 key")
		}
		return pub, nil
	}
	return source, cancel, nil
}
