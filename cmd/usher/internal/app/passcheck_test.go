package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/admission/pass"
	"usher/configs"
)

func TestKeysOfPassesThatDoNotMatchAreToldAtOnce(t *testing.T) {
	t.Parallel()
	rdb, err := openRedis(configs.Redis{PoolSize: 2}, redisURL(t), quietLog)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	var rings [2]pass.Ring
	for i := range rings {
		if rings[i], err = pass.NewRing(time.Now().Add(-time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	source := func(i int) pass.KeySource { return pass.RingSource(func() pass.Ring { return rings[i] }, time.Now) }
	var out bytes.Buffer
	check := &passCheck{rdb: rdb, keys: source(1), log: slog.New(slog.NewTextHandler(&out, nil))}
	expect := func(what string, errors int, ready bool) {
		t.Helper()
		check.look(t.Context())
		if n := strings.Count(out.String(), "level=ERROR"); n != errors {
			t.Errorf("%s: %d errors, want %d:\n%s", what, n, errors, out.String())
		}
		if p := check.fault(); (p == nil) != ready {
			t.Errorf("%s: ready %v, want %v", what, p == nil, ready)
		}
	}
	expect("no edge", 0, true)
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan struct{})
	go func() {
		defer close(told)
		_ = tellPasses(ctx, rdb, func() pass.Ring { return rings[0] }, time.Hour)
	}()
	for deadline := time.Now().Add(10 * time.Second); rdb.ZCard(t.Context(), passSignersKey).Val() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the edge tells nothing")
		}
	}
	cancel()
	<-told

	expect("another key file", 1, false)
	if p := check.fault(); !strings.Contains(p.Error()+p.Detail, rings[0].Keys()[0].ID) {
		t.Errorf("it does not say which key: %+v", p)
	}
	expect("still", 1, false)
	check.keys = func(kid string) (ed25519.PublicKey, error) { // another key under the same id
		public, _ := rings[1].Public(rings[1].Keys()[0].ID, time.Now())
		return public, nil
	}
	expect("the id of ours", 2, false)
	check.keys = func(string) (ed25519.PublicKey, error) { return nil, fmt.Errorf("%w: away", pass.ErrNoKeys) }
	expect("keys that cannot be fetched", 2, true)
	if check.agreed.Load() {
		t.Error("nothing was compared, and all is well")
	}
	check.keys = source(0)
	expect("the edge's keys", 2, true)

	// Another edge comes, of another version or with other keys: the box office serves on
	// those who are inside, and says it.
	public, _ := rings[0].Public(rings[0].Keys()[0].ID, time.Now())
	foreign := strings.Replace(signature(rings[0].Keys()[0].ID, public), " "+pass.Audience+" ", " somebody ", 1)
	for _, member := range []string{foreign, signature("unknown", public), "nonsense"} {
		rdb.ZAdd(t.Context(), passSignersKey, redis.Z{Score: float64(time.Now().Unix()), Member: member})
		before := strings.Count(out.String(), "level=ERROR")
		expect(member, before+1, true)
		rdb.ZRem(t.Context(), passSignersKey, member)
		expect("gone again", before+1, true)
	}
	rdb.ZAdd(t.Context(), passSignersKey, redis.Z{Score: float64(time.Now().Add(-2 * signerGone).Unix()), Member: foreign})
	expect("an edge long gone", strings.Count(out.String(), "level=ERROR"), true)
}
