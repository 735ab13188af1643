package app

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/configs"
	"usher/internal/devstack"
)

// redisURL starts a Redis that is gone when the test is: this package looks for leaks.
func redisURL(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "usher-checks-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := devstack.Redis(t.Context(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(); _ = os.RemoveAll(dir) })
	return s.URL
}

func TestARedisThatThrowsPlacesAwayIsRefused(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	rdb, err := openRedis(configs.Redis{PoolSize: 2}, redisURL(t), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	if err := checkRedis(t.Context(), rdb, configs.Redis{}, true, log); err != nil || out.Len() > 0 {
		t.Fatalf("a redis that is to be gone at the end: %v\n%s", err, out.String())
	}
	if err := checkRedis(t.Context(), rdb, configs.Redis{}, false, log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "append-only") || strings.Contains(out.String(), "clock") {
		t.Errorf("it said:\n%s", out.String())
	}
	if err := rdb.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	if err := checkRedis(t.Context(), rdb, configs.Redis{}, false, log); err == nil || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("started beside it: %v", err)
	}
	if err := checkRedis(t.Context(), rdb, configs.Redis{AllowEviction: true}, false, log); err != nil {
		t.Errorf("allowed, and refused: %v", err)
	}
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = away.Close() })
	if err := checkRedis(t.Context(), away, configs.Redis{}, false, log); err != nil || !strings.Contains(out.String(), "not checked") {
		t.Errorf("a redis that is away: %v\n%s", err, out.String())
	}
}

func TestAWrongClockIsTold(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for ahead, told := range map[time.Duration]bool{0: false, time.Second: false, -time.Second: false, 3 * time.Second: true, -3 * time.Second: true} {
		var out bytes.Buffer
		warnSkew(slog.New(slog.NewTextHandler(&out, nil)), "redis", now.Add(ahead), now, now.Add(10*time.Millisecond))
		if strings.Contains(out.String(), "a clock is wrong") != told {
			t.Errorf("%s ahead: %q", ahead, out.String())
		}
	}
}

func TestEdgesWithOtherPlaceSecretsFindEachOther(t *testing.T) {
	t.Parallel()
	rdb, err := openRedis(configs.Redis{PoolSize: 2}, redisURL(t), quietLog)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	secret := func(s string) []byte { return []byte(strings.Repeat(s, 32)) }
	first := newSigners(rdb, [][]byte{secret("a")}, quietLog)
	if err := first.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = first.run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	other := newSigners(rdb, [][]byte{secret("b")}, quietLog)
	for deadline := time.Now().Add(10 * time.Second); other.check(t.Context()) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an edge with another secret starts")
		}
	}
	if err := newSigners(rdb, [][]byte{secret("b"), secret("a")}, quietLog).check(t.Context()); err != nil {
		t.Errorf("an edge that verifies the other's places is refused: %v", err)
	}
	if all, err := rdb.ZRange(t.Context(), signersKey, 0, -1).Result(); err != nil || len(all) != 1 || strings.Contains(all[0], "a"+"aaa") {
		t.Errorf("stored: %v, %v", all, err)
	}
}
