package queuehttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"usher/admission/pass"
	"usher/internal/basehttp"
	"usher/queue/limits"
	"usher/queue/proof"
)

// cheap proofs, so that tests pay in a moment.
var cheap = proof.Price{Base: 20, Most: 320, Wait: 2 * time.Second, Long: 4 * time.Second}

// slow is so slow that nothing drips out of a bucket while a test runs.
func slow(burst int) limits.Rate { return limits.Rate{PerMinute: 1, Burst: burst} }

// tolled is a second listener of the same line that asks for tolls, and believes
// X-Forwarded-For from the trusted ones.
func (e *edge) tolled(t *testing.T, tolls Tolls, trusted ...string) (*edge, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	metrics, err := proof.NewMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	other := *e
	other.logs = &lockedBuffer{}
	log := slog.New(slog.NewTextHandler(other.logs, nil))
	server := basehttp.NewServer(basehttp.Options{Name: "edge", Log: log, Quiet: Quiet, TrustedProxies: trusted})
	New(Options{
		Line: e.line, Keys: func() pass.Ring { return e.ring }, Log: log, Tolls: func() Tolls { return tolls },
		Proofs: proof.New([][]byte{bytes.Repeat([]byte("s"), 32)}), ProofMetrics: metrics, TrustedProxies: trusted,
	}).Register(server.App)
	addr, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve() })
	t.Cleanup(func() {
		stop, done := context.WithTimeout(context.Background(), 5*time.Second)
		defer done()
		_ = server.Shutdown(stop)
		wg.Wait()
	})
	other.base = "http://" + addr.String()
	return &other, reg
}

// try joins and lets any answer be.
func (f fan) try(body string, header ...string) answer {
	f.t.Helper()
	if body != "" {
		header = append(header, "Content-Type", "application/json")
	}
	return f.send("POST", "/v1/rooms/"+f.e.room+"/places", body, header...)
}

// solved is the body that pays the challenge of an answer.
func solved(t *testing.T, a answer) string {
	t.Helper()
	var doc struct{ Challenge proof.Challenge }
	if err := json.Unmarshal(a.body, &doc); err != nil || doc.Challenge.Challenge == "" {
		t.Fatalf("no challenge: %v %s", err, a.body)
	}
	return `{"altcha":"` + payload(t, doc.Challenge) + `"}`
}

func payload(t *testing.T, c proof.Challenge) string {
	t.Helper()
	for n := range c.MaxNumber + 1 {
		if sum := sha256.Sum256([]byte(c.Salt + strconv.Itoa(n))); hex.EncodeToString(sum[:]) == c.Challenge {
			raw, _ := json.Marshal(map[string]any{"algorithm": c.Algorithm, "challenge": c.Challenge, "number": n, "salt": c.Salt, "signature": c.Signature})
			return base64.StdEncoding.EncodeToString(raw)
		}
	}
	t.Fatal("no number answers the challenge")
	return ""
}

func TestQ20_AThousandJoinsFromOneAddress(t *testing.T) {
	t.Parallel()
	plain := newEdge(t, 0, 10)
	e, reg := plain.tolled(t, Tolls{
		Rates: limits.Rates{PerAddress: slow(60), PerBlock: slow(200)}, Calm: limits.Calm{PerAddress: slow(10)}, Proof: ProofAuto, Price: cheap,
	}, "127.0.0.1")
	first := e.browser(t)
	first.join("X-Forwarded-For", "192.0.2.7")
	var got [600]atomic.Int64 // by status
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() { // half of them pay, the others do not know how
			for i := range 100 {
				f := e.api(t)
				key := fmt.Sprintf("bot-%d-%d", worker, i)
				a := f.try("", "X-Forwarded-For", "192.0.2.7", "Idempotency-Key", key)
				if a.status == 428 && worker%2 == 0 {
					a = f.try(solved(t, a), "X-Forwarded-For", "192.0.2.7", "Idempotency-Key", key)
				}
				got[a.status].Add(1)
				if a.status == 429 && (a.slug() != "too-many-requests" || a.header.Get("Retry-After") == "") {
					t.Errorf("429: %s", a.body)
				}
			}
		})
	}
	wg.Wait()
	if got[201].Load() != 59 || got[428].Load() == 0 || got[429].Load() == 0 || got[201].Load()+got[428].Load()+got[429].Load() != 1000 {
		t.Errorf("of a thousand %d got places, %d were asked to pay, %d were refused", got[201].Load(), got[428].Load(), got[429].Load())
	}
	if a := first.try("", "X-Forwarded-For", "192.0.2.7"); a.status != 200 {
		t.Errorf("who has a place there: %d %s", a.status, a.body)
	}
	if a := e.browser(t).try("", "X-Forwarded-For", "192.0.2.8"); a.status != 201 {
		t.Errorf("the neighbour: %d %s", a.status, a.body)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 2 || families[1].GetName() != "usher_proof_total" || len(families[1].GetMetric()) < 2 {
		t.Errorf("metrics: %v, %v", families, err)
	}
}

// Two hundred people behind one address, as a university's: each pays, all get in.
func TestQ20_ASharedAddressPaysAndGetsIn(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{
		Rates: limits.Rates{PerAddress: slow(1000)}, Calm: limits.Calm{PerAddress: slow(10)}, Proof: ProofAuto, Price: cheap,
	})
	var paid atomic.Int64
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() {
			for i := range 20 {
				f, key := e.api(t), fmt.Sprintf("student-%d-%d", worker, i)
				a := f.try("", "Idempotency-Key", key)
				for range 20 { // pressure rises while they compute
					if a.status != 428 {
						break
					}
					a = f.try(solved(t, a), "Idempotency-Key", key)
					paid.Add(1)
				}
				if a.status != 201 {
					t.Errorf("%s: %d %s", key, a.status, a.body)
				}
			}
		})
	}
	wg.Wait()
	if v, err := e.line.Room(e.room); err != nil || paid.Load() < 190 || paid.Load() > 400 {
		t.Errorf("paid %d times, %+v, %v", paid.Load(), v, err)
	}
}

// Behind a proxy that nobody named all fans have one address: the log says so.
func TestAnUntrustedProxyIsNoticed(t *testing.T) {
	t.Parallel()
	plain := newEdge(t, 0, 10)
	e, _ := plain.tolled(t, Tolls{Rates: limits.Rates{PerAddress: slow(1)}})
	e.api(t).try("", "X-Forwarded-For", "203.0.113.1")
	for range 5 {
		e.api(t).try("", "X-Forwarded-For", "203.0.113.1")
	}
	if n := strings.Count(e.logs.String(), "http.trustedProxies"); n != 1 {
		t.Errorf("warned %d times: %s", n, e.logs.String())
	}
}

func TestQ20_AForgedForwardedAddressChangesNothing(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Rates: limits.Rates{PerAddress: slow(3)}}, "10.0.0.0/8")
	for i := range 6 {
		a := e.api(t).try("", "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i), "X-Real-Ip", fmt.Sprint("198.51.100.", i))
		if want := map[bool]int{true: 201, false: 429}[i < 3]; a.status != want {
			t.Errorf("join %d: %d %s", i, a.status, a.body)
		}
	}
	// Behind a trusted proxy only what it wrote last counts, not what the client sent along.
	e, _ = newEdge(t, 0, 10).tolled(t, Tolls{Rates: limits.Rates{PerAddress: slow(3)}}, "127.0.0.1")
	for i := range 6 {
		a := e.api(t).try("", "X-Forwarded-For", fmt.Sprintf("203.0.113.%d, 198.51.100.1", i))
		if want := map[bool]int{true: 201, false: 429}[i < 3]; a.status != want {
			t.Errorf("by a proxy, join %d: %d %s", i, a.status, a.body)
		}
	}
}

func TestQ20_AProofOpensTheLineOnceForOneFan(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Proof: ProofAlways, Price: cheap})
	me := e.browser(t)
	asked := me.try("")
	if asked.status != 428 || asked.slug() != "proof-required" || asked.text("waitTicket") == "" || asked.num("retryAfterMs") != 2000 || asked.header.Get("Retry-After") != "2" {
		t.Fatalf("%d %s", asked.status, asked.body)
	}
	if me.cookie("usher_fan") == "" {
		t.Fatal("asked to come back, but nobody to come back as")
	}
	mine := solved(t, asked)
	invalid := func(what string, a answer) {
		t.Helper()
		if a.status != 422 || a.slug() != "proof-invalid" || a.doc["challenge"] == nil {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	invalid("bought by another program", e.api(t).try(mine, "Idempotency-Key", "k"))
	invalid("bought by another browser", e.api(t).try(mine, "Cookie", "usher_fan="+newFan()))
	place := me.try(mine)
	if place.status != 201 {
		t.Fatalf("paid: %d %s", place.status, place.body)
	}
	for what, body := range map[string]string{"again": mine, "without": "", "nonsense": `{"altcha":"%"}`, "dots": `{"altcha":"` + strings.Repeat(".", 60_000) + `"}`} {
		if a := me.try(body); a.status != 200 || a.text("placeId") != place.text("placeId") {
			t.Errorf("who has a place, %s: %d %s", what, a.status, a.body)
		}
	}
	me.send("DELETE", "/v1/rooms/cinema/place", "")
	invalid("replayed after leaving", me.try(mine))
	invalid("dots", me.try(`{"altcha":"`+strings.Repeat(".", 60_000)+`"}`))
	megabyte, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, e.base+"/v1/rooms/cinema/places", strings.NewReader(`{"altcha":"`+strings.Repeat(".", 1<<20)+`"}`))
	megabyte.Header.Set("Content-Type", "application/json")
	if res, err := me.client.Do(megabyte); err == nil { // or the connection was closed while it was still sent
		_ = res.Body.Close()
		if res.StatusCode != 413 {
			t.Errorf("a megabyte: %d", res.StatusCode)
		}
	}
	if a := me.try(`{"altcha":7}`); a.status != 400 {
		t.Errorf("a number: %d %s", a.status, a.body)
	}
	again := me.try("")
	edited := []byte(solved(t, again))
	edited[40] ^= 1
	invalid("edited by one byte", me.try(string(edited)))
	if a := me.try(solved(t, again)); a.status != 201 || a.text("placeId") != place.text("placeId") {
		t.Errorf("a proof that failed once by a bad copy: %d %s", a.status, a.body)
	}
}

func TestQ20_AHundredReplaysOfOneProofMakeOnePlace(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Proof: ProofAlways, Price: cheap})
	// No cookie, no key: a proof bound to the address, so that a hundred strangers there may try it.
	body := solved(t, e.api(t).try(""))
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 100 {
		wg.Go(func() {
			<-start
			switch a := e.api(t).try(body); a.status {
			case 201:
				made.Add(1)
			case 422:
				refused.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	close(start)
	wg.Wait()
	if made.Load() != 1 || refused.Load() != 99 {
		t.Errorf("%d places, %d refused", made.Load(), refused.Load())
	}
}

func TestAChallengeIsHadInAdvance(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Proof: ProofAlways, Price: cheap})
	f := e.api(t)
	a := f.send("GET", "/v1/rooms/cinema/challenge", "", "Idempotency-Key", "k")
	var c proof.Challenge
	if err := json.Unmarshal(a.body, &c); err != nil || a.status != 200 || a.header.Get("Cache-Control") != "no-store" || c.MaxNumber != 20 || len(a.doc) != 5 {
		t.Fatalf("%d %s, %v", a.status, a.body, err)
	}
	if a := f.try(`{"altcha":"`+payload(t, c)+`"}`, "Idempotency-Key", "k"); a.status != 201 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := f.send("GET", "/v1/rooms/nowhere/challenge", ""); a.status != 404 || a.slug() != "unknown-room" {
		t.Errorf("unknown room: %d %s", a.status, a.body)
	}
	// Of another room, for the same fan.
	e.settings(t, "stadium", 1, 0, 10, "open")
	a = f.send("GET", "/v1/rooms/stadium/challenge", "", "Idempotency-Key", "other")
	_ = json.Unmarshal(a.body, &c)
	if a := f.try(`{"altcha":"`+payload(t, c)+`"}`, "Idempotency-Key", "other"); a.status != 422 {
		t.Errorf("of another room: %d %s", a.status, a.body)
	}
}

func TestWhoCannotComputeWaits(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Rates: limits.Rates{PerWaiter: slow(2)}, Proof: ProofAlways, Price: cheap})
	type waiter struct {
		fan
		ticket string
	}
	var all []waiter
	for range 3 {
		f := e.browser(t)
		all = append(all, waiter{f, f.try("").text("waitTicket")})
	}
	body := func(ticket string) string { return `{"waitTicket":"` + ticket + `"}` }
	early := all[0].try(body(all[0].ticket))
	if early.status != 428 || early.text("waitTicket") != all[0].ticket || early.num("retryAfterMs") > 2000 {
		t.Errorf("early: %d %s", early.status, early.body)
	}
	if a := e.browser(t).try(body("x" + all[0].ticket[1:])); a.status != 422 {
		t.Errorf("made up: %d %s", a.status, a.body)
	}
	var in answer
	for deadline := time.Now().Add(20 * time.Second); in.status != 201 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		in = all[0].try(body(all[0].ticket))
	}
	if in.status != 201 {
		t.Fatalf("in time: %d %s", in.status, in.body)
	}
	if a := all[2].try(body(all[1].ticket)); a.status != 422 {
		t.Errorf("another fan's: %d %s", a.status, a.body)
	}
	if a := all[1].try(body(all[1].ticket)); a.status != 201 {
		t.Errorf("the second: %d %s", a.status, a.body)
	}
	if a := all[2].try(body(all[2].ticket)); a.status != 429 {
		t.Errorf("more of them than an address may wait for: %d %s", a.status, a.body)
	}
	all[0].send("DELETE", "/v1/rooms/cinema/place", "")
	if a := all[0].try(body(all[0].ticket)); a.status != 429 && a.status != 422 {
		t.Errorf("a second time: %d %s", a.status, a.body)
	}
}

func TestAFloodOfBrokenTokensIsToldToSlowDown(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Failures: slow(5)})
	good := e.api(t).join()
	for i := range 10 {
		a := e.api(t).send("GET", "/v1/rooms/cinema/place", "", "Authorization", "Bearer "+strings.Repeat(".", 300))
		if want := map[bool]int{true: 401, false: 429}[i < 5]; a.status != want {
			t.Errorf("try %d: %d %s", i, a.status, a.body)
		}
	}
	if a := e.api(t).send("GET", "/v1/rooms/cinema/place", "", bearer(good)...); a.status != 200 {
		t.Errorf("a good one beside it: %d %s", a.status, a.body)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, e.base+"/v1/rooms/cinema/place", nil)
	req.Header.Set("Authorization", "Bearer "+strings.Repeat(".", 1<<20))
	if res, err := http.DefaultClient.Do(req); err == nil { // or the connection was closed while it was still sent
		_ = res.Body.Close()
		if res.StatusCode != 431 && res.StatusCode != 400 {
			t.Errorf("a megabyte of dots: %d", res.StatusCode)
		}
	}
	if a := e.api(t).send("GET", "/v1/rooms/cinema", ""); a.status != 200 {
		t.Errorf("afterwards: %d", a.status)
	}
}

// A place near the head could keep Redis busy by itself: what it asks there has a limit,
// over all ways together. Polls from memory have none, and nobody else pays for it.
func TestAPlaceThatAsksTooOftenIsToldToWait(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Asks: slow(6)})
	greedy, other := e.api(t).join(), e.api(t).join()
	path := "/v1/rooms/cinema/"
	statuses := []int{}
	ask := func(method, path string) {
		t.Helper()
		a := e.api(t).send(method, path, "", bearer(greedy)...)
		statuses = append(statuses, a.status)
		if a.status == 429 && (a.slug() != "too-many-requests" || a.header.Get("Retry-After") == "") {
			t.Errorf("%s %s: %s %v", method, path, a.body, a.header)
		}
	}
	for range 2 {
		ask("POST", path+"pass")
		ask("POST", path+"places")
		ask("GET", path+"place/stream")
	}
	for _, status := range statuses {
		if status == 429 {
			t.Errorf("refused early: %v", statuses)
		}
	}
	for range 2 {
		ask("POST", path+"pass")
		ask("POST", path+"places")
		ask("GET", path+"place/stream")
		ask("DELETE", path+"place")
	}
	for _, status := range statuses[6:] {
		if status != 429 {
			t.Errorf("served: %v", statuses)
		}
	}
	if a := e.api(t).send("POST", path+"pass", "", bearer(other)...); a.status == 429 {
		t.Errorf("another place: %d %s", a.status, a.body)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		a := e.api(t).send("GET", path+"place", "", bearer(greedy)...)
		if a.status == 200 && a.num("position") == 1 {
			break // the next board knows them
		}
		if time.Now().After(deadline) {
			t.Fatalf("its place: %d %s", a.status, a.body)
		}
	}
}

func TestAPageWithoutScriptWaitsAndPresses(t *testing.T) {
	t.Parallel()
	e, _ := newEdge(t, 0, 10).tolled(t, Tolls{Proof: ProofAlways, Price: cheap})
	f := e.browser(t)
	f.send("GET", "/rooms/cinema", "")
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	page := string(f.send("POST", "/rooms/cinema/join", "", form...).body) // followed to the page
	if !strings.Contains(page, `name="waitTicket"`) || !strings.Contains(page, `http-equiv="refresh"`) || !strings.Contains(page, "Please wait") {
		t.Fatalf("no wait on the page:\n%s", page)
	}
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(page, "Thank you for waiting"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never ends:\n%s", page)
		}
		page = string(f.send("GET", "/rooms/cinema", "").body)
	}
	_, ticket, _ := strings.Cut(page, `name="waitTicket" value="`)
	ticket, _, _ = strings.Cut(ticket, `"`)
	if page = string(f.send("POST", "/rooms/cinema/join", "waitTicket="+ticket, form...).body); !strings.Contains(page, `data-state="waiting"`) {
		t.Errorf("pressed:\n%s", page)
	}
	if f.cookie("usher_wait_cinema") != "" {
		t.Error("the ticket stays behind")
	}
}
