package queue

import (
	"regexp"
	"strconv"
	"testing"
	"time"
)

// A draw of a million, by one edge: go test -bench Draw -benchtime 1x -run '^$' ./queue
// It reports the scripts' times as Redis measured them; on a busy machine the longest
// one is the machine's, not the script's.
func BenchmarkDraw(b *testing.B) {
	const fans = 1_000_000
	rdb := ownRedis(b)
	l := newLine(b, rdb)
	for b.Loop() {
		b.StopTimer()
		d := gatheringRoom(b, l)
		crowd(b, l, d.Room, fans)
		d.draw(b)
		rdb.ConfigSet(b.Context(), "slowlog-log-slower-than", "5000")
		rdb.Do(b.Context(), "SLOWLOG", "RESET")
		rdb.ConfigResetStat(b.Context())
		b.StartTimer()
		d.drawOn(b, l)
		b.StopTimer()
		stats := rdb.Info(b.Context(), "commandstats").Val()
		if m := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=\d+,usec_per_call=([\d.]+)`).FindStringSubmatch(stats); m != nil {
			calls, _ := strconv.ParseFloat(m[1], 64)
			mean, _ := strconv.ParseFloat(m[2], 64)
			b.ReportMetric(calls, "scripts")
			b.ReportMetric(mean/1000, "ms/script-mean")
		}
		logs, err := rdb.SlowLogGet(b.Context(), 128).Result()
		if err != nil {
			b.Fatal(err)
		}
		longest, slow := time.Duration(0), 0.0
		for _, s := range logs {
			if s.Args[0] == "evalsha" {
				longest, slow = max(longest, s.Duration), slow+1
			}
		}
		b.ReportMetric(float64(longest.Microseconds())/1000, "ms/script-longest")
		b.ReportMetric(slow, "scripts-above-5ms") // 128 are counted at most
		d.finish(b)
		rdb.FlushAll(b.Context())
		b.StartTimer()
	}
}
