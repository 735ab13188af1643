package queuehttp

import (
	"bytes"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"usher/admission/pass"
	"usher/internal/basehttp"
	"usher/internal/devstack/devstacktest"
	"usher/queue"
)

// BenchmarkPoll is a poll from the parsed request to the answer before it is written,
// with the listener's own middleware: by the express way, and by Fiber's. It must not
// ask Redis.
func BenchmarkPoll(b *testing.B) {
	b.Run("express", func(b *testing.B) { benchmarkPoll(b, true) })
	b.Run("fiber", func(b *testing.B) { benchmarkPoll(b, false) })
}

func benchmarkPoll(b *testing.B, express bool) {
	ro, err := redis.ParseURL(devstacktest.OwnRedis(b).URL)
	if err != nil {
		b.Fatal(err)
	}
	rdb := redis.NewClient(ro)
	defer func() { _ = rdb.Close() }()
	line, err := queue.New(rdb, queue.Options{PlaceSecrets: [][]byte{bytes.Repeat([]byte("s"), 32)}})
	if err != nil {
		b.Fatal(err)
	}
	if err := line.PutSettings(b.Context(), queue.Settings{
		Room: "cinema", Title: "Cinema", Mode: "fifo", State: "open", RatePerMinute: 600, Cap: 100, Run: 1, Version: 1, BookingURL: "http://booking.test/",
	}); err != nil {
		b.Fatal(err)
	}
	var token queue.Token
	for _, id := range []string{"before", "the fan who asks", "behind"} {
		v, err := line.Join(b.Context(), "cinema", queue.Fan{ID: id})
		if err != nil {
			b.Fatal(err)
		}
		if id != "behind" {
			token = v.Token
		}
	}
	time.Sleep(time.Millisecond)
	server := basehttp.NewServer(basehttp.Options{Name: "edge", Log: quiet(), Quiet: Quiet, Observe: func(string, string, int, time.Duration) {}})
	other, err := queue.New(rdb, queue.Options{PlaceSecrets: [][]byte{bytes.Repeat([]byte("s"), 32)}})
	if err != nil {
		b.Fatal(err)
	}
	edge := New(Options{Line: other, Keys: func() pass.Ring { return pass.Ring{} }, Log: quiet()})
	edge.Register(server.App)
	if express {
		server.Express(edge.Express)
	}
	server.App.Handler() // builds the routes
	handle := server.App.Server().Handler
	var ctx fasthttp.RequestCtx
	poll := func() {
		ctx.Request.Reset()
		ctx.Response.Reset()
		ctx.Request.SetRequestURI("/v1/rooms/cinema/place?shown=2.0.600.100")
		ctx.Request.Header.Set("Authorization", "Bearer "+string(token))
		handle(&ctx)
	}
	poll() // reads the board, verifies the token
	if ctx.Response.StatusCode() != 200 {
		b.Fatal(string(ctx.Response.Body()))
	}
	b.ReportAllocs()
	for b.Loop() {
		poll()
	}
	b.StopTimer()
	if ctx.Response.StatusCode() != 200 {
		b.Fatal(string(ctx.Response.Body()))
	}
}
