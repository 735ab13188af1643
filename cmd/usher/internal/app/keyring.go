package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"usher/admission/pass"
)

// keyring is the pass keys of a file, read again when the file changes: a
// rotation needs no restart. A file that cannot be read, or holds a broken ring,
// changes nothing.
type keyring struct {
	path string
	log  *slog.Logger
	ring atomic.Pointer[pass.Ring]

	mu     sync.Mutex // one reader of the file at a time
	data   []byte     // as last read
	looked time.Time  // for a key id that was not known
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

// find is a pass.KeySource. A key id that is not known may stand in the file
// already: the edge that signed has read it, and our next look is not due.
func (k *keyring) find(kid string) (ed25519.PublicKey, error) {
	source := pass.RingSource(k.get, time.Now)
	key, err := source(kid)
	if err == nil {
		return key, nil
	}
	k.mu.Lock()
	if time.Since(k.looked) > 100*time.Millisecond { // made-up ids cost ten reads a second
		k.reloadLocked()
		k.looked = time.Now()
	}
	k.mu.Unlock()
	return source(kid)
}

func (k *keyring) reload() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reloadLocked()
}

func (k *keyring) reloadLocked() {
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

// passKeys are those of the key file when there is one, else the edge's published keys.
func (a *App) passKeys() (pass.KeySource, error) {
	if a.config().Pass.KeysFile != "" {
		k, err := a.openKeys()
		if err != nil {
			return nil, err
		}
		return k.find, nil
	}
	p := newPublished(a.config().Pass.JWKSURL, a.log)
	a.spawn("published keys", p.run)
	p.await(jwksPatience)
	return p.find, nil
}
