package app

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/admission/pass"
	"usher/internal/basehttp"
)

// passSignersKey is a ZSET: how an edge signs passes → when it last told (s).
const passSignersKey = "usher:passes"

// signature is what both ends of a pass must agree on: issuer, audience, key id and
// public key. Nothing of it is secret.
func signature(kid string, public ed25519.PublicKey) string {
	return strings.Join([]string{pass.Issuer, pass.Audience, kid, base64.RawURLEncoding.EncodeToString(public)}, " ")
}

// tellPasses lets booking processes of the same Redis know how this edge signs, until
// ctx ends. A rotation is told with the next turn.
func tellPasses(ctx context.Context, rdb redis.UniversalClient, ring func() pass.Ring, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		now := time.Now()
		if key, err := ring().Signer(now); err == nil {
			if public, ok := ring().Public(key.ID, now); ok {
				call, cancel := context.WithTimeout(ctx, checkTimeout)
				_ = rdb.ZAdd(call, passSignersKey, redis.Z{Score: float64(now.Unix()), Member: signature(key.ID, public)}).Err() // told again in a moment
				_ = rdb.ZRemRangeByScore(call, passSignersKey, "-inf", fmt.Sprint(now.Add(-time.Hour).Unix())).Err()
				cancel()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// passCheck finds out whether the passes of the edges alive would be taken here. One
// that would not be is an error in the log at once, and not the news of the first fan
// who is refused. A process that has never agreed with the edges is not ready. One that
// has stays ready: an edge that comes with wrong keys later must not take the box
// office from those who are inside.
type passCheck struct {
	rdb    redis.UniversalClient
	keys   pass.KeySource
	log    *slog.Logger
	agreed atomic.Bool            // once, since the start
	wrong  atomic.Pointer[string] // what is wrong at the moment
}

// look asks once. A Redis that is away, or no edge alive, is no fault.
func (p *passCheck) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	alive, err := p.rdb.ZRangeByScore(ctx, passSignersKey, &redis.ZRangeBy{
		Min: fmt.Sprint(time.Now().Add(-signerGone).Unix()), Max: "+inf",
	}).Result()
	if err != nil {
		return // it is told elsewhere that Redis is away
	}
	fault, matched := "", false
	for _, s := range alive {
		kid := ""
		if parts := strings.Fields(s); len(parts) == 4 {
			kid = parts[2]
		}
		public, err := p.keys(kid)
		switch {
		case errors.Is(err, pass.ErrNoKeys): // they cannot be fetched now, which was told; no news of whether they match
		case err != nil:
			fault = fmt.Sprintf("an edge signs passes with the key %.40q, which is not among ours (%v)", kid, err)
		case signature(kid, public) != s:
			fault = fmt.Sprintf("an edge signs passes as %.120q, and we take them as %.120q", s, signature(kid, public))
		default:
			matched = true
		}
	}
	before := p.wrong.Load()
	if fault == "" {
		p.wrong.Store(nil)
		if before != nil {
			p.log.Info("the edges' passes are taken now")
		}
		if matched {
			p.agreed.Store(true)
		}
		return
	}
	p.wrong.Store(&fault)
	if before == nil || *before != fault {
		p.log.Error("every fan of an edge will be refused here: keys of passes do not match; give pass.keysFile of the edges to booking, or their address as pass.jwksURL", "fault", fault)
	}
}

// run looks until ctx ends.
func (p *passCheck) run(ctx context.Context) error {
	tick := time.NewTicker(signerEvery)
	defer tick.Stop()
	for {
		p.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// fault is why this process must not be ready; nil for none. p may be nil.
func (p *passCheck) fault() *basehttp.Problem {
	if p == nil || p.agreed.Load() {
		return nil
	}
	if wrong := p.wrong.Load(); wrong != nil {
		return probNotReady.Detailf("Keys of passes do not match: %s.", *wrong)
	}
	return nil
}
