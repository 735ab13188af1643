package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"usher/booking/bookingtest"
	"usher/internal/devstack/devstacktest"
)

const operatorToken = "a-token-for-tests-of-thirty-two-bytes"

// cluster is two edges, two booking processes and the sandbox: processes of
// their own over one Postgres and one Redis.
type cluster struct {
	postgres, redis string
	env             []string
	config          string
	edges, bookings [2]string
	admins          [2]string // of the booking processes
	sandbox         string
	edgeProcs       [2]*process
	bookingProcs    [2]*process
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{postgres: bookingtest.URL(t), redis: devstacktest.OwnRedis(t).URL}
	dir := t.TempDir()
	mustUsher(t, nil, "keys", "new", "--file="+dir+"/keys.json")
	sum := sha256.Sum256([]byte(operatorToken))
	edgeAddr, bookingAddr, sandboxAddr := devstacktest.FreeAddr(t), devstacktest.FreeAddr(t), devstacktest.FreeAddr(t)
	c.sandbox = "http://" + sandboxAddr
	c.config = filepath.Join(dir, "usher.yaml")
	if err := os.WriteFile(c.config, fmt.Appendf(nil, `
log: {level: info}
edge: {publicURL: "http://%[1]s", secureCookies: false, placeSecrets: [%[4]s], proof: {mode: "off"}}
booking: {publicURL: "http://%[2]s", secureCookies: false, sessionSecret: %[4]s, ticketSecrets: [%[4]s]}
sandbox: {addr: "%[3]s"}
admin: {addr: "127.0.0.1:0"}
redis: {url: "%[5]s"}
postgres: {url: "%[6]s"}
pass: {keysFile: keys.json}
payment: {url: "http://%[3]s", apiKey: %[4]s, secrets: [%[4]s], callbackURL: "http://%[2]s/v1/payments/callback"}
operators: [{name: tester, role: operator, tokenHash: "sha256:%[7]s"}]
`, edgeAddr, bookingAddr, sandboxAddr, strings.Repeat("s", 32), c.redis, c.postgres, hex.EncodeToString(sum[:])), 0o600); err != nil {
		t.Fatal(err)
	}
	mustUsher(t, nil, "migrate", "up", "--config="+c.config)
	mustUsher(t, nil, "migrate", "status", "--config="+c.config)
	for _, f := range []string{"cinema", "last-seats"} {
		mustUsher(t, nil, "event", "apply", "--config="+c.config, "-f", "../../booking/catalog/demo/"+f+".yaml")
	}
	start(t, nil, "sandbox", "--config="+c.config)
	c.env = []string{"USHER_PASS_KEYS_FILE=" + dir + "/keys.json"}
	for i, addr := range [2]string{edgeAddr, devstacktest.FreeAddr(t)} {
		c.edges[i] = "http://" + addr
		c.edgeProcs[i] = start(t, append(c.env, "USHER_EDGE_ADDR="+addr), "edge", "--config="+c.config)
	}
	for i, addr := range [2]string{bookingAddr, devstacktest.FreeAddr(t)} {
		c.bookings[i] = "http://" + addr
		admin := devstacktest.FreeAddr(t)
		c.admins[i] = "http://" + admin
		env := append(c.env, "USHER_BOOKING_ADDR="+addr, "USHER_ADMIN_ADDR="+admin)
		if i == 1 { // the second knows no secret key: it verifies by what the edge publishes
			env = append(env, "USHER_PASS_KEYS_FILE=", "USHER_PASS_JWKS_URL="+c.edges[0]+"/.well-known/jwks.json")
		}
		c.bookingProcs[i] = start(t, env, "booking", "--config="+c.config)
	}
	for i := range 2 {
		c.bookingProcs[i].until(time.Minute, "ready", func() bool { return strings.Contains(c.bookingProcs[i].errs.String(), `"msg":"ready"`) })
		c.edgeProcs[i].until(time.Minute, "rooms", func() bool {
			r, err := send(t.Context(), "GET", c.edges[i]+"/v1/rooms/cinema", "", "")
			return err == nil && r.status == 200 && r.text("state") == "open"
		})
	}
	return c
}

// Everything a fan does may land on any process.
func TestTwoOfEach(t *testing.T) {
	t.Parallel()
	c := startCluster(t)

	// A place of one edge is a place at the other; a pass is good at both bookings.
	f := fan{edge: c.edges[1], room: "cinema"}
	first := call(t, 201, "POST", c.edges[0]+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", "one")
	again := call(t, 200, "POST", c.edges[1]+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", "one")
	if first.text("placeId") == "" || first.text("placeId") != again.text("placeId") {
		t.Errorf("two places for one fan: %s, %s", first.body, again.body)
	}
	f.place = first.text("token")
	f.claim(t)
	samePass := call(t, 201, "POST", c.edges[0]+"/v1/rooms/cinema/pass", f.place, "")
	if samePass.text("pass") != f.pass {
		t.Error("the other edge gave another pass for one admission")
	}

	// One pass at both bookings at once: one session.
	answers := make([]reply, 20)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			<-gate
			answers[i], _ = send(t.Context(), "POST", c.bookings[i%2]+"/v1/sessions", "", `{"pass":"`+f.pass+`"}`)
		})
	}
	close(gate)
	wg.Wait()
	created := 0
	for _, a := range answers {
		if a.status == 201 {
			created++
		}
		if a.status/100 == 2 && f.session == "" {
			f.session = a.text("sessionToken")
		}
		if a.status/100 == 2 && a.text("sessionToken") != f.session {
			t.Errorf("two sessions for one pass: %s", a.body)
		}
		if a.status/100 != 2 && a.status != 409 {
			t.Errorf("exchange: %d %s", a.status, a.body)
		}
	}
	if created != 1 {
		t.Errorf("%d sessions were made of one pass", created)
	}

	// Many fans, two processes, the same seats: each pair is held once.
	show := showtime(t, c.bookings[0], "cinema")
	fans := []fan{f}
	for i := range 7 {
		fans = append(fans, admit(t, c.edges[i%2], c.bookings[(i/2)%2], "cinema", fmt.Sprintf("rival-%d", i)))
	}
	gate = make(chan struct{})
	won := make([]int, len(fans))
	for i, rival := range fans {
		wg.Go(func() {
			<-gate
			r, err := send(t.Context(), "POST", c.bookings[i%2]+"/v1/showtimes/"+show+"/holds", rival.session, `{"seats":["G7","G8"]}`)
			if err != nil || (r.status != 201 && r.status != 409) {
				t.Errorf("hold: %v %d %s", err, r.status, r.body)
			}
			won[i] = r.status
		})
	}
	close(gate)
	wg.Wait()
	winners := 0
	for _, status := range won {
		if status == 201 {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%d fans hold G7 and G8: %v", winners, won)
	}

	// An operator's stop at one booking process reaches both edges within a second.
	begin := time.Now()
	call(t, 200, "POST", c.admins[1]+"/v1/admin/rooms/cinema/pause", operatorToken, "")
	for _, edge := range c.edges {
		eventually(t, 5*time.Second, "the pause at "+edge, func() bool {
			return call(t, 200, "GET", edge+"/v1/rooms/cinema", "", "").text("state") == "paused"
		})
	}
	if took := time.Since(begin); took > 2500*time.Millisecond { // one second, and a crowded machine
		t.Errorf("the pause took %s", took)
	}
	mustUsher(t, nil, "audit", "--config="+c.config)
}

// A rotation of the keys loses nobody, at the process that knows the keys only
// as the edge publishes them too (Q10).
func TestQ10_RotateKeysMidSale(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	old := fan{edge: c.edges[0], room: "cinema"}
	old.place = call(t, 201, "POST", c.edges[0]+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", "old").text("token")
	old.claim(t)
	waiting := call(t, 201, "POST", c.edges[0]+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", "waiting").text("token")

	mustUsher(t, c.env, "keys", "rotate", "--publish-first=4s")
	kid := func(token string) string { return strings.Split(token, ".")[0] }
	fresh := fan{edge: c.edges[0], room: "cinema", place: waiting}
	fresh.claim(t) // still by the old key, or by the new one: both are good everywhere
	for i, p := range []string{old.pass, fresh.pass} {
		call(t, 201, "POST", c.bookings[1-i]+"/v1/sessions", "", `{"pass":"`+p+`"}`)
	}
	eventually(t, 30*time.Second, "both keys published", func() bool {
		return strings.Count(call(t, 200, "GET", c.edges[1]+"/.well-known/jwks.json", "", "").body, `"kid"`) == 2
	})
	// Made-up key ids must not keep a new key's passes out.
	bogus := "eyJhbGciOiJFZERTQSIsImtpZCI6ImJvZ3VzIiwidHlwIjoiSldUIn0.eyJpc3MiOiJ1c2hlciJ9.AAAA"
	for range 5 {
		call(t, 401, "POST", c.bookings[1]+"/v1/sessions", "", `{"pass":"`+bogus+`"}`)
	}
	// Every pass on the way over is taken, until both edges sign with the new key.
	n, turned := 0, [2]bool{}
	eventually(t, 60*time.Second, "passes of the new key from both edges", func() bool {
		next := fan{edge: c.edges[n%2], room: "cinema"}
		next.place = call(t, 201, "POST", next.edge+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", fmt.Sprint("next-", n)).text("token")
		next.claim(t)
		call(t, 201, "POST", c.bookings[(n/2)%2]+"/v1/sessions", "", `{"pass":"`+next.pass+`"}`)
		turned[n%2] = kid(next.pass) != kid(old.pass)
		n++
		return turned[0] && turned[1]
	})
}

// The end of a process under traffic loses nothing that was accepted: no
// connection is cut with a request on it, every 201 is in the stores.
func TestSigtermUnderTraffic(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	var fans []fan
	for i := range 6 {
		fans = append(fans, admit(t, c.edges[i%2], c.bookings[i%2], "cinema", fmt.Sprintf("busy-%d", i)))
	}
	show := showtime(t, c.bookings[0], "cinema")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var holds, places []string
	var sent int
	gone := make([]chan struct{}, 0, 2*len(fans))
	worker := func(one func(n int) (refused bool)) {
		over := make(chan struct{})
		gone = append(gone, over)
		go func() {
			defer close(over)
			for n := 0; ctx.Err() == nil; n++ {
				if one(n) {
					return
				}
			}
		}()
	}
	// judge tells a refused connection, which is no loss, from one that was cut.
	judge := func(what string, r reply, err error) (refused bool) {
		mu.Lock()
		defer mu.Unlock()
		sent++
		if err == nil {
			return false
		}
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "dial" { // cut after it was connected
			t.Errorf("%s: %v after %d requests", what, err, sent)
		}
		return true
	}
	for i, f := range fans {
		worker(func(n int) bool { // take and give back a seat, at the booking that will go
			body := fmt.Sprintf(`{"seats":["%c%d"]}`, 'D'+rune(i), 5+n%6)
			r, err := send(ctx, "POST", c.bookings[0]+"/v1/showtimes/"+show+"/holds", f.session, body)
			if judge("hold", r, err) {
				return true
			}
			if r.status == 201 {
				mu.Lock()
				holds = append(holds, r.text("holdId"))
				mu.Unlock()
				r, err = send(ctx, "DELETE", c.bookings[0]+"/v1/holds/"+r.text("holdId"), f.session, "")
				return judge("release", r, err)
			}
			return false
		})
		worker(func(n int) bool { // join at the edge that will go
			r, err := send(ctx, "POST", c.edges[0]+"/v1/rooms/last-seats/places", "", "", "Idempotency-Key", fmt.Sprintf("t-%d-%d", i, n))
			if judge("join", r, err) {
				return true
			}
			if r.status == 201 {
				mu.Lock()
				places = append(places, r.text("token"))
				mu.Unlock()
			}
			return false
		})
	}
	eventually(t, 30*time.Second, "traffic", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(holds) > 10 && len(places) > 100
	})
	begin := time.Now()
	c.bookingProcs[0].signal(syscall.SIGTERM)
	c.edgeProcs[0].signal(syscall.SIGTERM)
	for _, p := range []*process{c.bookingProcs[0], c.edgeProcs[0]} {
		if code := p.exits(20 * time.Second); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	took := time.Since(begin)
	for _, over := range gone {
		<-over
	}
	t.Logf("stopped in %s under traffic, %d requests", took, sent)
	conn, err := pgx.Connect(t.Context(), c.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var found int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM hold WHERE hold_id::text = ANY($1)`, holds).Scan(&found); err != nil {
		t.Fatal(err)
	}
	if found != len(holds) {
		t.Errorf("%d holds were answered 201, %d are in the database", len(holds), found)
	}
	for i := 0; i < len(places); i += 1 + len(places)/50 { // some fifty of them
		r := call(t, 200, "GET", c.edges[1]+"/v1/rooms/last-seats/place", places[i], "")
		if s := r.text("status"); s != "waiting" && s != "called" {
			t.Errorf("a place that was answered 201 is %s", s)
		}
	}
	mustUsher(t, nil, "audit", "--config="+c.config)
}

// B16, the part of the process: without Redis the box office serves on, and is
// ready.
func TestB16_BookingWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := devstacktest.OwnRedis(t)
	postgres := bookingtest.URL(t)
	dir := t.TempDir()
	mustUsher(t, nil, "keys", "new", "--file="+dir+"/keys.json")
	addr, admin := devstacktest.FreeAddr(t), devstacktest.FreeAddr(t)
	secret := strings.Repeat("s", 32)
	env := []string{
		"USHER_POSTGRES_URL=" + postgres, "USHER_REDIS_URL=" + redis.URL, "USHER_BOOKING_ADDR=" + addr, "USHER_ADMIN_ADDR=" + admin,
		"USHER_BOOKING_SESSION_SECRET=" + secret, "USHER_BOOKING_TICKET_SECRETS=" + secret, "USHER_PASS_KEYS_FILE=" + dir + "/keys.json", "USHER_EDGE_PUBLIC_URL=http://127.0.0.1:1",
		"USHER_PAYMENT_URL=http://127.0.0.1:1", "USHER_PAYMENT_API_KEY=" + secret, "USHER_PAYMENT_SECRETS=" + secret,
	}
	mustUsher(t, env, "event", "apply", "-f", "../../booking/catalog/demo/cinema.yaml")
	redis.Kill() // gone before the process comes
	p := start(t, env, "booking")
	p.until(time.Minute, "ready", func() bool {
		r, err := send(t.Context(), "GET", "http://"+admin+"/readyz", "", "")
		return err == nil && r.status == 200
	})
	p.until(20*time.Second, "the bridge to complain", func() bool { return strings.Contains(p.errs.String(), "the bridge cannot ship") })
	show := showtime(t, "http://"+addr, "cinema")
	call(t, 200, "GET", "http://"+addr+"/v1/showtimes/"+show+"/seats", "", "")
	call(t, 200, "GET", "http://"+admin+"/readyz", "", "")
	if n := strings.Count(p.errs.String(), "the bridge cannot ship"); n > 3 {
		t.Errorf("it complained %d times", n)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exits(20 * time.Second); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// A client that never ends its request does not keep a process.
func TestStopWithinTwentySeconds(t *testing.T) {
	t.Parallel()
	dev, at := startDev(t, nil)
	var conns []net.Conn
	for _, url := range []string{at.Edge, at.Booking} {
		for _, half := range []string{"", "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", "GET / HTT"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			if _, err := conn.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	begin := time.Now()
	dev.signal(syscall.SIGTERM)
	dev.exits(20 * time.Second)
	t.Logf("stopped in %s", time.Since(begin))
}
