package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is emptied in the middle of a sale, under two edges and two box offices, all of
// them processes: who is inside books on, who waits keeps the order, nobody comes in
// while it is not known who is inside, and never more than the cap.
func TestQ15_RedisIsEmptiedMidSale(t *testing.T) {
	t.Parallel()
	const slots, waiting = 3, 6
	c := startCluster(t)
	o, err := redis.ParseURL(c.redis)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer func() { _ = rdb.Close() }()
	admin := c.admins[0] + "/v1/admin/rooms/last-seats"
	call(t, 200, "PATCH", admin, operatorToken, `{"ratePerMinute":6000}`)
	inside := func() int {
		line, _ := call(t, 200, "GET", admin, operatorToken, "").doc["line"].(map[string]any)
		n, ok := line["inside"].(float64)
		if !ok {
			return -1
		}
		return int(n)
	}

	var visitors, fans []fan
	for i := range slots {
		visitors = append(visitors, admit(t, c.edges[i%2], c.bookings[i%2], "last-seats", fmt.Sprint("inside-", i)))
	}
	call(t, 200, "PATCH", admin, operatorToken, `{"ratePerMinute":0}`) // nobody is called, so all have numbers
	join := func(edge, key string) {
		t.Helper()
		f := fan{edge: edge, room: "last-seats"}
		eventually(t, 30*time.Second, key+" joins", func() bool {
			r, err := send(t.Context(), "POST", edge+"/v1/rooms/last-seats/places", "", "", "Idempotency-Key", key)
			f.place = r.text("token")
			return err == nil && r.status == 201
		})
		fans = append(fans, f)
	}
	for i := range waiting {
		join(c.edges[i%2], fmt.Sprint("waiting-", i))
	}
	look := func(i int) reply {
		return call(t, 200, "GET", c.edges[rand.IntN(2)]+"/v1/rooms/last-seats/place", fans[i].place, "")
	}
	recovering := func(edge string) bool {
		r, err := send(t.Context(), "GET", edge+"/v1/rooms/last-seats", "", "")
		on, _ := r.doc["recovering"].(bool)
		return err == nil && r.status == 200 && on
	}
	inOrder := func() bool {
		for i := range fans {
			p := look(i)
			if at, _ := p.doc["position"].(float64); p.text("status") != "waiting" || int(at) != i+1 {
				return false
			}
		}
		return true
	}
	eventually(t, 30*time.Second, "a line", inOrder)

	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	show := showtime(t, c.bookings[0], "last-seats")
	seats, _ := call(t, 200, "GET", c.bookings[0]+"/v1/showtimes/"+show+"/seats", "", "").doc["seats"].([]any)
	next := 0
	for i, v := range visitors { // at once, in whatever state the line is
		code := ""
		for ; code == ""; next++ {
			if seat, _ := seats[next].(map[string]any); seat["status"] == "AVAILABLE" {
				code, _ = seat["code"].(string)
			}
		}
		call(t, 201, "POST", c.bookings[1-i%2]+"/v1/showtimes/"+show+"/holds", v.session, `{"seats":["`+code+`"]}`)
	}
	for _, edge := range c.edges {
		eventually(t, 30*time.Second, "the loss is noticed at "+edge, func() bool { return recovering(edge) })
	}
	for i := range fans { // each page polls, which puts its place back
		p := look(i)
		if p.text("status") != "waiting" {
			t.Errorf("fan %d is %s", i, p.text("status"))
		}
	}
	join(c.edges[1], "newcomer")
	for i := range fans {
		if r, err := send(t.Context(), "POST", c.edges[i%2]+"/v1/rooms/last-seats/pass", fans[i].place, ""); err != nil || r.status == 201 {
			t.Errorf("let in while it is not known who is inside: %d, %v", r.status, err)
		}
	}
	eventually(t, 30*time.Second, "those inside have their slots again", func() bool { return inside() == slots })

	// The hold is three minutes; the clock of the hold alone is turned.
	if err := rdb.HSet(t.Context(), "usher:{last-seats}:state", "hold", time.Now().Add(-time.Second).UnixMicro()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, edge := range c.edges {
		eventually(t, 30*time.Second, "the recovery ends at "+edge, func() bool { return !recovering(edge) })
	}
	eventually(t, 30*time.Second, "the old order, and the newcomer behind it", inOrder)
	call(t, 200, "PATCH", admin, operatorToken, `{"ratePerMinute":6000}`)
	left := map[int]bool{}
	for i := range fans {
		left[i] = true
	}
	for want := range fans {
		call(t, 204, "DELETE", c.bookings[0]+"/v1/session", visitors[0].session, "")
		visitors = visitors[1:]
		eventually(t, 60*time.Second, fmt.Sprint("fan ", want, " comes in"), func() bool {
			for i := range left { // in no order
				r, err := send(t.Context(), "POST", c.edges[rand.IntN(2)]+"/v1/rooms/last-seats/pass", fans[i].place, "")
				if err != nil || r.status != 201 {
					continue
				}
				if i != want {
					t.Fatalf("fan %d comes in before fan %d", i, want)
				}
				delete(left, i)
				s := call(t, 201, "POST", c.bookings[i%2]+"/v1/sessions", "", `{"pass":"`+r.text("pass")+`"}`)
				visitors = append(visitors, fan{session: s.text("sessionToken")})
			}
			return !left[want]
		})
		if n := inside(); n > slots || len(visitors) > slots {
			t.Fatalf("%d inside by the line, %d by their passes; the cap is %d", n, len(visitors), slots)
		}
	}
	mustUsher(t, nil, "audit", "--config="+c.config)
}
