package queue

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/queue/limits"
)

// BenchmarkJoinToll tells what limits and a proof add to the join script: new
// places, pipelined by 500, so that Redis and not the way there is measured.
func BenchmarkJoinToll(b *testing.B) {
	everyone := limits.Rates{PerFan: limits.Rate{PerMinute: 6, Burst: 10}, PerAddress: limits.Rate{PerMinute: 1200, Burst: 3000}, PerBlock: limits.Rate{PerMinute: 6e6, Burst: 1e7}, PerRoom: limits.Rate{PerMinute: 6e6, Burst: 1e7}}
	calm := limits.Calm{PerAddress: limits.Rate{PerMinute: 20, Burst: 20}, PerBlock: limits.Rate{PerMinute: 6e6, Burst: 1e7}, PerRoom: limits.Rate{PerMinute: 6e6, Burst: 1e7}}
	for name, t := range map[string]*limits.Toll{
		"none": nil, "limits": {Rates: everyone, Calm: calm}, "limits-and-proof": {Rates: everyone, Calm: calm, Covers: 1, MarkLife: time.Minute},
	} {
		b.Run(name, func(b *testing.B) {
			l := newLine(b, ownRedis(b))
			room := openRoom(b, l, 0, 1)
			keys := l.own(room).keys
			if err := l.loadScripts(b.Context()); err != nil {
				b.Fatal(err)
			}
			l.rdb.ConfigResetStat(b.Context())
			b.ResetTimer()
			for from := 0; from < b.N; from += 500 {
				pipe := l.rdb.Pipeline()
				for i := from; i < min(from+500, b.N); i++ {
					p, err := l.identify(room, Fan{ID: fmt.Sprint(i)})
					if err != nil {
						b.Fatal(err)
					}
					k, args := keys, []any{p.member[:], 0, micros(l.opts.ClaimWindow), keptMissed, "", 0, l.witness(l.own(room)), "", 0, keptGone}
					if t != nil {
						mine := *t
						mine.Address = fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
						if mine.Covers > 0 {
							mine.Mark = p.id()
						}
						c := mine.For(room, p.id())
						k, args = append(append([]string{}, k...), c.Keys...), append(args, c.Blob)
					}
					joinScript.EvalSha(b.Context(), pipe, k, args...)
				}
				cmds, err := pipe.Exec(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if reply, _ := cmds[0].(*redis.Cmd).Slice(); text(reply, 0) != "waiting" { //nolint:errcheck // the shape is checked
					b.Fatal(reply)
				}
			}
			b.StopTimer()
			_, stat, _ := strings.Cut(l.rdb.InfoMap(b.Context(), "commandstats").Item("Commandstats", "cmdstat_evalsha"), "usec_per_call=")
			stat, _, _ = strings.Cut(stat, ",")
			us, _ := strconv.ParseFloat(stat, 64)
			b.ReportMetric(us, "redis-µs/op")
		})
	}
}
