package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/configs"
)

const (
	checkTimeout = 2 * time.Second  // of the questions at a start; a Redis that is away is no fault
	clockSkew    = 2 * time.Second  // between machines; above it a warning
	signersKey   = "usher:signers"  // ZSET: fingerprint of an edge's first place secret → when it last told (s)
	signerEvery  = 10 * time.Second // how often an edge tells
	signerGone   = 45 * time.Second // an edge that has not told for so long has stopped
)

// checkRedis looks at what would lose places later: a Redis that throws keys away
// refuses the start, what is merely unwise is a warning. Redis need not be there:
// then nothing is checked, and it is said. One that is passing, gone with this
// process, needs no file.
func checkRedis(ctx context.Context, rdb redis.UniversalClient, c configs.Redis, passing bool, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var found []string
	look := func(ctx context.Context, node redis.Cmdable) error {
		memory, err := node.Info(ctx, "memory").Result()
		if err != nil {
			return err
		}
		if p := infoField(memory, "maxmemory_policy"); p != "noeviction" && p != "" {
			found = append(found, p)
		}
		persistence, err := node.Info(ctx, "persistence").Result()
		if err != nil {
			return err
		}
		if infoField(persistence, "aof_enabled") == "0" && !passing {
			log.Warn("redis keeps no append-only file: a restart empties the line, which fans' tokens then bring back; set appendonly yes")
		}
		before := time.Now()
		theirs, err := node.Time(ctx).Result()
		if err != nil {
			return err
		}
		warnSkew(log, "redis", theirs, before, time.Now())
		return nil
	}
	err := error(nil)
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		var one sync.Mutex // the client asks all nodes at once
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			one.Lock()
			defer one.Unlock()
			return look(ctx, node)
		})
	} else {
		err = look(ctx, rdb)
	}
	switch {
	case len(found) > 0 && !c.AllowEviction:
		return fmt.Errorf("app: redis would throw places away when it is full: maxmemory-policy is %s; set it to noeviction, "+
			"or redis.allowEviction if you must", strings.Join(found, ", "))
	case len(found) > 0:
		log.Warn("redis may throw places away when it is full", "maxmemory_policy", strings.Join(found, ", "))
	case err != nil:
		log.Warn("redis was not checked for eviction, persistence and clock", "err", err)
	}
	return nil
}

// warnSkew compares another machine's clock, read between before and after, with ours.
func warnSkew(log *slog.Logger, whose string, theirs, before, after time.Time) {
	ahead := theirs.Sub(after)
	if behind := before.Sub(theirs); behind > ahead {
		ahead = -behind
	}
	if ahead > clockSkew || ahead < -clockSkew {
		log.Warn("a clock is wrong: passes may be refused, and times told are off", "of", whose,
			"ahead_of_this_machine", ahead.Round(time.Millisecond), "warned_above", clockSkew)
	}
}

func infoField(info, name string) string {
	_, rest, ok := strings.Cut(info, name+":")
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// signers lets edges that share a Redis find out that their place secrets differ: a
// place that one signs would be nothing to the other. Only a fingerprint is stored,
// an HMAC that tells nothing of the secret.
type signers struct {
	rdb  redis.UniversalClient
	log  *slog.Logger
	mine []string // the fingerprints of all our secrets; the first signs
}

func newSigners(rdb redis.UniversalClient, secrets [][]byte, log *slog.Logger) *signers {
	s := &signers{rdb: rdb, log: log}
	for _, secret := range secrets {
		m := hmac.New(sha256.New, secret)
		m.Write([]byte("usher place secret fingerprint"))
		s.mine = append(s.mine, hex.EncodeToString(m.Sum(nil)[:8]))
	}
	return s
}

// check refuses when an edge that is alive signs with a secret we do not know.
func (s *signers) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	alive, err := s.rdb.ZRangeByScore(ctx, signersKey, &redis.ZRangeBy{
		Min: fmt.Sprint(time.Now().Add(-signerGone).Unix()), Max: "+inf",
	}).Result()
	if err != nil {
		s.log.Warn("the place secrets of other edges were not checked", "err", err)
		return nil
	}
	known := map[string]bool{}
	for _, f := range s.mine {
		known[f] = true
	}
	for _, f := range alive {
		if !known[f] {
			return fmt.Errorf("app: another edge on this redis signs places with a secret that edge.placeSecrets does not have "+
				"(fingerprint %s, ours %s): its fans would lose their places here. Give every edge the same list; a new secret "+
				"goes behind the old one everywhere before it goes first", f, strings.Join(s.mine, ", "))
		}
	}
	return nil
}

// run tells our fingerprint until ctx ends, and shouts when another edge differs.
func (s *signers) run(ctx context.Context) error {
	tick := time.NewTicker(signerEvery)
	defer tick.Stop()
	wrong := false
	for {
		call, cancel := context.WithTimeout(ctx, checkTimeout)
		now := time.Now()
		_ = s.rdb.ZAdd(call, signersKey, redis.Z{Score: float64(now.Unix()), Member: s.mine[0]}).Err() // told again in a moment
		_ = s.rdb.ZRemRangeByScore(call, signersKey, "-inf", fmt.Sprint(now.Add(-time.Hour).Unix())).Err()
		cancel()
		err := s.check(ctx)
		if err != nil && !wrong {
			s.log.Error("place secrets differ", "err", err)
		}
		wrong = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
