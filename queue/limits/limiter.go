package limits

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed allow.lua
var allowLua string

var allowScript = redis.NewScript(Lua + allowLua)

// Limiter charges buckets that belong to no verb of the line, all edges together:
// guesses of a code, for example.
type Limiter struct {
	rdb   redis.Scripter
	rates func(what string) Rate
}

// NewLimiter asks Redis nothing yet. rates answers the rate of one address for
// each kind of request given to Allow, at each call, so that it may change; a
// whole block of addresses has ten times that.
func NewLimiter(rdb redis.Scripter, rates func(what string) Rate) *Limiter {
	return &Limiter{rdb: rdb, rates: rates}
}

// Allow charges one request of a kind ("move") to the address and its block in
// the room. It is nil when there is room for it, *RefusedError when not, and else
// what Redis failed with. An addr that is no address ("") counts as one address.
func (l *Limiter) Allow(ctx context.Context, room, what, addr string) error {
	rate := l.rates(what)
	if rate.PerMinute <= 0 {
		return nil
	}
	address, block := Blocks(addr)
	c := charge([]bucket{
		{name: what, key: limitKey(room, what, address), hard: rate},
		{name: what, key: limitKey(room, what, block+"/all"), hard: Rate{PerMinute: 10 * rate.PerMinute, Burst: 10 * rate.Burst}},
	}, "", 0, 0, 0, false)
	reply, err := allowScript.Run(ctx, l.rdb, c.Keys, c.Blob).Slice()
	if err != nil {
		return fmt.Errorf("limits: %s: %w", what, err)
	}
	if err := c.Refusal(reply); err != nil {
		return err
	}
	if len(reply) == 0 || reply[0] != "ok" {
		return fmt.Errorf("limits: %s: unexpected reply %v", what, reply)
	}
	return nil
}

// Refusal is what a script's reply says when its toll was not paid; nil for any
// other reply.
func (c *Charge) Refusal(reply []any) error {
	if len(reply) == 0 {
		return nil
	}
	switch reply[0] {
	case "used":
		return ErrUsed
	case "limit":
		if len(reply) < 3 {
			return nil
		}
		i, _ := reply[1].(int64)
		us, _ := strconv.ParseInt(fmt.Sprint(reply[2]), 10, 64)
		return &RefusedError{Bucket: c.Bucket(int(i)), RetryAfter: max(time.Millisecond, time.Duration(us)*time.Microsecond)}
	case "proof":
		if len(reply) < 2 {
			return nil
		}
		p, _ := strconv.ParseFloat(fmt.Sprint(reply[1]), 64)
		return &ProofError{Pressure: max(1, p)}
	}
	return nil
}
