package queue

import (
	"testing"
	"time"
)

// A draw of a million, by one edge: go test -bench Draw -benchtime 1x -run '^$' ./queue
// It reports the longest script as Redis measured it.
func BenchmarkDraw(b *testing.B) {
	const fans = 1_000_000
	rdb := ownRedis(b)
	l := newLine(b, rdb)
	for b.Loop() {
		b.StopTimer()
		d := gatheringRoom(b, l)
		crowd(b, l, d.Room, fans)
		d.draw(b)
		rdb.ConfigSet(b.Context(), "slowlog-log-slower-than", "1000")
		rdb.Do(b.Context(), "SLOWLOG", "RESET")
		b.StartTimer()
		d.drawOn(b, l)
		b.StopTimer()
		logs, err := rdb.SlowLogGet(b.Context(), -1).Result()
		if err != nil {
			b.Fatal(err)
		}
		longest := time.Duration(0)
		for _, s := range logs {
			if s.Args[0] == "evalsha" {
				longest = max(longest, s.Duration)
			}
		}
		b.ReportMetric(float64(longest.Microseconds())/1000, "ms/longest-script")
		d.finish(b)
		rdb.FlushAll(b.Context())
		b.StartTimer()
	}
}
