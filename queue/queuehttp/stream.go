package queuehttp

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"usher/internal/basehttp"
	"usher/internal/ssehub"
	"usher/queue"
)

const (
	streamRoute = pollRoute + "/stream"
	// A place has a few streams: tabs. The oldest makes way, so that a single fan does
	// not take what all share.
	streamsAPlace = 3
	// What moves with everybody's joins and sales (the length of the line, the wait, what
	// is left) is told at most so often; what concerns the fan, at once.
	ambientEvery = 5 * time.Second
	// A called fan whose window runs changes only by an own claim or by the window's end.
	calledEvery = time.Second
	// How long a client waits before it comes back when a stream broke off.
	retryLow, retryHigh = 2 * time.Second, 10 * time.Second
)

var (
	errStreamsFull = basehttp.NewProblem(503, "streams-full", "No stream is free; ask for the place instead")
	errNotNear     = basehttp.NewProblem(409, "not-near-the-head", "Streams are for places near the head of the line")
)

// watcher is one fan's open stream.
type watcher struct {
	stream *ssehub.Stream
	ask    queue.Ask
	told   news
	at     time.Time // of the last event
	looked time.Time
}

// news is what a fan is told at once when it changes.
type news struct {
	status              queue.Status
	position, available int // available: whether any is left, not how many
	standingBy, revoked bool
	calledUntil         time.Time
	state, mode         string
	recovering, stale   bool
	soldOut             bool
}

func newsOf(v *queue.View) news {
	return news{
		status: v.Status, position: v.Position, available: min(v.Room.Available, 1), standingBy: v.StandingBy, revoked: v.Revoked,
		calledUntil: v.CalledUntil, state: v.Room.State, mode: v.Room.Mode,
		recovering: v.Room.Recovering, stale: v.Room.Stale, soldOut: v.Room.SoldOut,
	}
}

// streams keeps the watchers of all rooms. One loop (run) tells them all; handlers only
// add to them.
type streams struct {
	s   *Server
	hub *ssehub.Hub

	mu    sync.Mutex
	rooms map[string]map[queue.Token][]*watcher
}

func newStreams(s *Server, o Options) *streams {
	reg := o.Registerer
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	hub, err := ssehub.New(ssehub.Options{Max: o.Streams, Subsystem: "edge", Registerer: reg})
	if err != nil {
		panic(err) // registered twice: a mistake of whoever builds two servers
	}
	return &streams{s: s, hub: hub, rooms: map[string]map[queue.Token][]*watcher{}}
}

// streamable tells whether a place's page should open a stream now.
func (s *Server) streamable(v *queue.View) bool { return v.Near() && s.streams.hub.Free() }

// Run tells the streams what changes, until ctx ends; it returns nil then.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.streams.hub.Run(ctx) })
	defer wg.Wait()
	tick := time.NewTicker(time.Second) // boards come by Moves; this is for a line whose loops hang
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.line.Moves():
		case <-tick.C:
		}
		s.streams.tell(ctx, time.Now())
	}
}

// Drain ends all streams and opens no new ones: the first thing an exit does. Their
// clients come back spread over 10 to 30 seconds, by their number.
func (s *Server) Drain() {
	n := time.Duration(s.streams.hub.Len())
	s.streams.hub.Drain(min(max(n*time.Second/300, 10*time.Second), 30*time.Second))
}

func (s *Server) getStream(c *fiber.Ctx) error {
	name := room(c)
	token, err := s.presented(c, name)
	if err != nil {
		return err
	}
	if err := s.ask(name, queue.Fan{Place: token}); err != nil {
		return err
	}
	ctx, cancel := callContext()
	defer cancel()
	v, err := s.line.StatusSince(ctx, name, token, queue.ParseShown(c.Query("shown")))
	noStore(c)
	switch {
	case err != nil:
		return problem(err)
	case v.Over():
		return c.SendStatus(fiber.StatusNoContent) // by which an EventSource stops asking
	case !v.Near() || v.Token != token:
		return errNotNear.Detailf("Ask for the place; its answer says when there is a stream for it.").After(v.PollAfter)
	case c.Method() == fiber.MethodHead:
		c.Set(fiber.HeaderContentType, "text/event-stream")
		return nil
	}
	stream, err := s.streams.hub.Take(c.Context().Conn())
	if err != nil {
		full := errStreamsFull.Detailf("Ask for the place again after pollAfterMs; try a stream later.").
			After(10*time.Second + rand.N(20*time.Second))
		if !errors.Is(err, ssehub.ErrFull) && !errors.Is(err, ssehub.ErrClosed) {
			return full.Because(err)
		}
		return full
	}
	w := &watcher{stream: stream, ask: queue.Ask{Token: v.Token}}
	head := ssehub.AppendRetry(streamHeader(c), retryLow, retryHigh)
	head = s.streams.event(head, w, &v, time.Now())
	c.Context().HijackSetNoResponse(true)
	c.Context().Hijack(func(net.Conn) { // the server closes its own descriptor when this returns
		stream.Begin(head)
		s.streams.add(name, w)
	})
	return nil
}

// streamHeader is the response's header. The body ends with the connection; proxies
// must neither keep nor collect it.
func streamHeader(c *fiber.Ctx) []byte {
	b := make([]byte, 0, 1<<10)
	b = append(b, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\nConnection: close\r\n"...)
	for _, name := range []string{"X-Request-Id", "X-Content-Type-Options"} {
		if v := c.GetRespHeader(name); v != "" {
			b = append(append(append(append(b, name...), ": "...), v...), "\r\n"...)
		}
	}
	return append(b, "\r\n"...)
}

// event appends the place as it stands, and notes that it is told.
func (t *streams) event(b []byte, w *watcher, v *queue.View, now time.Time) []byte {
	w.told, w.at, w.looked = newsOf(v), now, now
	w.ask.Seen, w.ask.Told = v.Room.At, v.Shown()
	return ssehub.AppendEvent(b, "place", t.s.appendPlace(make([]byte, 0, 1<<10), v))
}

func (t *streams) add(room string, w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.rooms[room]
	if of == nil {
		of = map[queue.Token][]*watcher{}
		t.rooms[room] = of
	}
	list := slices.DeleteFunc(of[w.ask.Token], func(w *watcher) bool { return w.stream.Over() })
	for len(list) >= streamsAPlace {
		list[0].stream.Close(nil, ssehub.Replaced)
		list = list[1:]
	}
	of[w.ask.Token] = append(list, w)
}

// open are a room's living watchers; the dead are forgotten on the way.
func (t *streams) open(room string) []*watcher {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*watcher
	for token, list := range t.rooms[room] {
		list = slices.DeleteFunc(list, func(w *watcher) bool { return w.stream.Over() })
		if len(list) == 0 {
			delete(t.rooms[room], token)
			continue
		}
		t.rooms[room][token] = list
		all = append(all, list...)
	}
	if len(t.rooms[room]) == 0 {
		delete(t.rooms, room)
	}
	return all
}

func (t *streams) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.rooms))
	for name := range t.rooms {
		names = append(names, name)
	}
	return names
}

// tellAtOnce bounds what tell has in its hands: the answers to 10,000 streams together
// were more memory than the streams.
const tellAtOnce = 500

// tell looks at all places with a stream, many of a room together, and sends what
// is new. Only this loop touches a watcher once it was added.
func (t *streams) tell(ctx context.Context, now time.Time) {
	for _, room := range t.names() {
		for some := range slices.Chunk(t.open(room), tellAtOnce) {
			t.tellSome(ctx, room, some, now)
		}
	}
}

func (t *streams) tellSome(ctx context.Context, room string, some []*watcher, now time.Time) {
	var due []*watcher
	var asks []queue.Ask
	for _, w := range some {
		if w.told.status == queue.Called && !w.told.standingBy && now.Sub(w.looked) < calledEvery {
			continue
		}
		due, asks = append(due, w), append(asks, w.ask)
	}
	if len(asks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	answers := t.s.line.Glance(ctx, room, asks)
	cancel()
	for i, w := range due {
		t.give(w, answers[i], now)
	}
}

// give sends one answer, when there is something to say.
func (t *streams) give(w *watcher, a queue.Answer, now time.Time) {
	w.looked = now
	v := &a.View
	switch {
	case a.Same:
		return
	case errors.Is(a.Err, queue.ErrStale), errors.Is(a.Err, context.DeadlineExceeded), errors.Is(a.Err, context.Canceled):
		return // the last state stands until the store answers
	case a.Err != nil:
		w.stream.Close(nil, ssehub.Ended) // a poll tells what there is to tell
		return
	case v.Token != w.ask.Token:
		w.stream.Close(nil, ssehub.Moved) // a poll brings the new token, and its cookie
		return
	case v.Over():
		w.stream.Close(t.event(nil, w, v, now), ssehub.Ended)
		return
	case newsOf(v) == w.told && now.Sub(w.at) < ambientEvery:
		w.ask.Seen = v.Room.At
		return
	}
	kept := *w
	if !w.stream.Send(t.event(nil, w, v, now)) {
		*w = kept // busy: the state of a later moment is told instead
	}
}
