package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"usher/internal/devstack/devstacktest"
)

// waiter is one waiting page, without a browser around it.
type waiter struct {
	token    string
	position int
	after    time.Duration // when it comes back by itself
	stream   *http.Response
}

// crowd are the pages of one edge.
type crowd struct {
	client *http.Client
	edge   string
}

func (c crowd) get(ctx context.Context, path, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.edge+"/v1/rooms/cinema/place"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return c.client.Do(req)
}

func (c crowd) join(ctx context.Context, key string) (waiter, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.edge+"/v1/rooms/cinema/places", nil)
	if err != nil {
		return waiter{}, err
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := c.client.Do(req)
	if err != nil {
		return waiter{}, err
	}
	defer func() { _ = res.Body.Close() }()
	var doc struct {
		Token       string `json:"token"`
		Position    int    `json:"position"`
		PollAfterMs int64  `json:"pollAfterMs"`
	}
	if err := json.NewDecoder(res.Body).Decode(&doc); err != nil || res.StatusCode != 201 {
		return waiter{}, fmt.Errorf("join: %d, %w", res.StatusCode, err)
	}
	return waiter{token: doc.Token, position: doc.Position, after: time.Duration(doc.PollAfterMs) * time.Millisecond}, nil
}

// listen opens the page's stream and reads the place as it stands.
func (c crowd) listen(ctx context.Context, p *waiter) (position int, err error) {
	res, err := c.get(ctx, "/stream", p.token)
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return 0, fmt.Errorf("stream: %d", res.StatusCode)
	}
	p.stream = res
	r := bufio.NewReader(res.Body)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var doc struct{ Position int }
			err := json.Unmarshal([]byte(data), &doc)
			return doc.Position, err
		}
	}
}

// busiest is the largest number of returns within one second.
func busiest(returns []time.Duration) int {
	slices.Sort(returns)
	most, from := 0, 0
	for i, at := range returns {
		for at-returns[from] >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// 5,000 pages wait, the head of them with streams, and the edge is restarted: they
// come back spread over seconds, to their places, and the box office does not notice.
func TestQ19_ARestartedEdgeIsNotOverrun(t *testing.T) {
	t.Parallel()
	const pages, near = 5000, 200
	c := startCluster(t)
	visitor := admit(t, c.edges[1], c.bookings[0], "cinema", "a-visitor-inside")
	call(t, 200, "POST", c.admins[0]+"/v1/admin/rooms/cinema/pause", operatorToken, "")
	addr := devstacktest.FreeAddr(t)
	env := append(c.env, "USHER_EDGE_ADDR="+addr, // a crowd from one address
		"USHER_EDGE_LIMITS_PER_ADDRESS_PER_MINUTE=0", "USHER_EDGE_LIMITS_PER_BLOCK_PER_MINUTE=0")
	up := func() *process {
		p := start(t, env, "edge", "--config="+c.config)
		p.until(time.Minute, "the room", func() bool {
			r, err := send(t.Context(), "GET", "http://"+addr+"/v1/rooms/cinema", "", "")
			return err == nil && r.status == 200 && r.text("state") == "paused"
		})
		return p
	}
	edge := up()
	all := crowd{edge: "http://" + addr, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: near + 32}}}
	defer all.client.CloseIdleConnections()

	waiting := make([]waiter, pages)
	each := func(n int, do func(i int) error) {
		t.Helper()
		var next atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for i := int(next.Add(1)) - 1; i < n && !t.Failed(); i = int(next.Add(1)) - 1 {
					if err := do(i); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	each(pages, func(i int) (err error) {
		waiting[i], err = all.join(t.Context(), fmt.Sprintf("page-%05d-of-the-crowd", i))
		return err
	})
	slices.SortFunc(waiting, func(a, b waiter) int { return a.position - b.position })
	each(near, func(i int) error {
		position, err := all.listen(t.Context(), &waiting[i])
		waiting[i].position = position
		return err
	})

	// Booking is busy all the while, and every answer is good.
	show := showtime(t, c.bookings[0], "cinema")
	hold := func(seats string) string {
		t.Helper()
		return call(t, 201, "POST", c.bookings[0]+"/v1/showtimes/"+show+"/holds", visitor.session, `{"seats":[`+seats+`]}`).text("holdId")
	}
	held := hold(`"E5","E6"`)
	busy, rest := context.WithCancel(t.Context())
	var booking sync.WaitGroup
	var trips atomic.Int64
	booking.Go(func() {
		for busy.Err() == nil {
			for _, path := range []string{"/v1/holds/" + held, "/v1/showtimes/" + show + "/seats"} {
				if r, err := send(t.Context(), "GET", c.bookings[0]+path, visitor.session, ""); err != nil || r.status != 200 {
					t.Errorf("booking: GET %s: %d %s %v", path, r.status, r.body, err)
				}
			}
			trips.Add(1)
		}
	})
	defer func() {
		rest()
		booking.Wait()
		if trips.Load() < 100 {
			t.Errorf("the box office was asked %d times only", trips.Load())
		}
	}()

	edge.signal(syscall.SIGTERM)
	var returns []time.Duration
	for i := range waiting {
		p := &waiting[i]
		if p.stream != nil { // it was told when to come back, and ended
			last, err := io.ReadAll(p.stream.Body)
			_, text, ok := strings.Cut(string(last), "retry: ")
			ms, nerr := strconv.Atoi(strings.TrimSpace(text))
			if err != nil || !ok || nerr != nil {
				t.Fatalf("a stream ended with %q, %v", last, err)
			}
			_ = p.stream.Body.Close()
			p.after = time.Duration(ms) * time.Millisecond
		}
		returns = append(returns, p.after)
	}
	if code := edge.exits(20 * time.Second); code != 0 {
		t.Fatalf("exit %d", code)
	}
	// The worst there is: all of them asked in one and the same moment.
	streams := busiest(slices.Clone(returns[:near]))
	if most := busiest(slices.Clone(returns)); streams > near/4 || most > pages*3/10 {
		t.Errorf("in one second %d of %d streams return, and %d of %d pages", streams, near, most, pages)
	} else {
		t.Logf("in the busiest second %d of %d streams return, and %d of %d pages", streams, near, most, pages)
	}

	hold(`"F5","F6"`) // nobody there to let fans in, and sales go on
	up()
	var wg sync.WaitGroup
	for i := range near { // really, as a browser would
		wg.Go(func() {
			p := &waiting[i]
			select {
			case <-time.After(p.after):
			case <-t.Context().Done():
				return
			}
			position, err := all.listen(t.Context(), p)
			if err != nil || position > p.position || position < 1 {
				t.Errorf("back with position %d after %d: %v", position, p.position, err)
				return
			}
			_ = p.stream.Body.Close()
		})
	}
	wg.Wait()
	each(pages/10, func(i int) error {
		p := waiting[i*10]
		res, err := all.get(t.Context(), fmt.Sprintf("?shown=%d", p.position), p.token)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		var doc struct {
			Status   string
			Position int
		}
		if err := json.NewDecoder(res.Body).Decode(&doc); err != nil || doc.Status != "waiting" || doc.Position > p.position {
			return fmt.Errorf("after the restart %+v, %w; was at %d", doc, err, p.position)
		}
		return nil
	})
}
