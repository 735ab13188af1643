package queuehttp

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"usher/queue/customer"
	"usher/queue/limits"
)

var shopSecret = []byte("a secret of thirty-two bytes, ok")

// shop is an edge whose rooms trust an integrator; required may be switched.
func shopEdge(t *testing.T, rate int) (e *edge, required *atomic.Bool) {
	t.Helper()
	key, err := customer.Secret(shopSecret)
	if err != nil {
		t.Fatal(err)
	}
	required = &atomic.Bool{}
	e = newEdgeWith(t, rate, 10, func(o *Options) {
		o.Customers = func(string) Customers {
			return Customers{Trust: &customer.Trust{Issuer: "https://shop.example", Keys: customer.Static{key}}, Required: required.Load()}
		}
	})
	return e, required
}

func customerToken(t *testing.T, sub string, change ...func(jwt.MapClaims)) string {
	t.Helper()
	c := jwt.MapClaims{
		"iss": "https://shop.example", "aud": "cinema", "sub": sub, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for _, f := range change {
		f(c)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(shopSecret)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

func (f fan) postJSON(path, body string, header ...string) answer {
	f.t.Helper()
	return f.send("POST", path, body, append(header, "Content-Type", jsonType)...)
}

func (f fan) postForm(path string, values url.Values, header ...string) answer {
	f.t.Helper()
	return f.send("POST", path, values.Encode(), append(header, "Content-Type", formType)...)
}

func TestOneCustomerTwoBrowsersOnePlace(t *testing.T) {
	t.Parallel()
	e, _ := shopEdge(t, 60_000)
	body := `{"customerToken":"` + customerToken(t, "alice") + `"}`
	phone, laptop := e.browser(t), e.browser(t)
	phone.send("GET", "/rooms/cinema", "") // sets the fan's cookie
	laptop.send("GET", "/rooms/cinema", "")
	a := phone.postJSON("/v1/rooms/cinema/places", body)
	b := laptop.postJSON("/v1/rooms/cinema/places", "", "Usher-Customer", customerToken(t, "alice"))
	if a.status != 201 || b.status != 200 || a.text("placeId") != b.text("placeId") || a.text("token") == b.text("token") {
		t.Fatalf("%d %s\n%d %s", a.status, a.body, b.status, b.body)
	}
	if other := e.api(t).postJSON("/v1/rooms/cinema/places", `{"customerToken":"`+customerToken(t, "bob")+`"}`); other.text("placeId") == a.text("placeId") {
		t.Error("bob is alice")
	}
	// Without the token again: a reload, and the page's own join.
	if again := phone.join(); again.status != 200 || again.text("placeId") != a.text("placeId") {
		t.Errorf("%d %s", again.status, again.body)
	}
	if again := phone.join("Idempotency-Key", "x"); again.text("placeId") != a.text("placeId") {
		t.Errorf("%s", again.body)
	}
	one, two := laptop.pass(), phone.pass()
	c, d := e.claims(t, one.text("pass")), e.claims(t, two.text("pass"))
	if c.ID != d.ID || c.Customer != d.Customer || c.BindingHash == d.BindingHash || !c.Bound(one.text("binding")) || !d.Bound(two.text("binding")) || c.Bound(two.text("binding")) {
		t.Errorf("%+v %s\n%+v %s", c, one.body, d, two.body)
	}
}

func TestBadCustomerTokensChangeNothing(t *testing.T) {
	t.Parallel()
	e, _ := shopEdge(t, 0)
	for name, token := range map[string]string{
		"nonsense": "a.b.c", "dots": strings.Repeat(".", 8000),
		"expired":    customerToken(t, "alice", func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Second).Unix() }),
		"other room": customerToken(t, "alice", func(c jwt.MapClaims) { c["aud"] = "stadium" }),
		"other shop": customerToken(t, "alice", func(c jwt.MapClaims) { c["iss"] = "https://evil.example" }),
	} {
		f := e.browser(t)
		for how, a := range map[string]answer{
			"body":   f.postJSON("/v1/rooms/cinema/places", `{"customerToken":"`+token+`"}`),
			"header": f.postJSON("/v1/rooms/cinema/places", "", "Usher-Customer", token),
		} {
			if a.status != 401 || a.slug() != "customer-token-invalid" || len(a.header.Values("Set-Cookie")) > 0 {
				t.Errorf("%s, %s: %d %s", name, how, a.status, a.body)
			}
		}
		form := f.postForm("/rooms/cinema/join", url.Values{"customerToken": {token}}, "Origin", "https://shop.example", "Sec-Fetch-Site", "cross-site")
		if form.status != 401 || len(form.header.Values("Set-Cookie")) > 0 || !strings.Contains(string(form.body), "could not take you over") {
			t.Errorf("%s, form: %d %s", name, form.status, form.body)
		}
	}
	megabyte, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, e.base+"/v1/rooms/cinema/places",
		strings.NewReader(`{"customerToken":"`+strings.Repeat(".", 1<<20)+`"}`))
	megabyte.Header.Set("Content-Type", "application/json")
	if res, err := http.DefaultClient.Do(megabyte); err == nil { // or the connection was closed while it was still sent
		_ = res.Body.Close()
		if res.StatusCode != 413 {
			t.Errorf("a megabyte: %d", res.StatusCode)
		}
	}
	if a := e.api(t).postJSON("/v1/rooms/nowhere/places", `{"customerToken":"`+customerToken(t, "alice")+`"}`); a.status != 404 {
		t.Errorf("no room: %d %s", a.status, a.body)
	}
	if v, err := e.line.Room("cinema"); err != nil || v.Waiting != 0 {
		t.Errorf("%d wait, %v", v.Waiting, err)
	}
	plain := newEdge(t, 0, 10)
	if a := plain.api(t).postJSON("/v1/rooms/cinema/places", `{"customerToken":"`+customerToken(t, "alice")+`"}`); a.status != 401 || a.slug() != "customer-token-invalid" {
		t.Errorf("a room that trusts nobody: %d %s", a.status, a.body)
	}
}

func TestBrokenCustomerTokensAreSlowedDown(t *testing.T) {
	t.Parallel()
	e := newEdgeWith(t, 0, 10, func(o *Options) {
		o.Customers = func(string) Customers { return Customers{Trust: &customer.Trust{Issuer: "x", Keys: customer.Static{}}} }
		o.Tolls = func() Tolls { return Tolls{Failures: limits.Rate{PerMinute: 1, Burst: 3}} }
	})
	var last answer
	for range 6 {
		last = e.api(t).postJSON("/v1/rooms/cinema/places", `{"customerToken":"a.b.c"}`)
	}
	if last.status != 429 || last.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", last.status, last.body)
	}
}

// The integrator's page posts a form from another site: our cookies stay at home, and
// come with the page that follows.
func TestAnotherSitesFormHandsACustomerOver(t *testing.T) {
	t.Parallel()
	e, _ := shopEdge(t, 0)
	e.api(t).join("Idempotency-Key", "first")
	cross := []string{"Origin", "https://shop.example", "Sec-Fetch-Site", "cross-site"}
	f := e.browser(t)
	token := customerToken(t, "alice")
	page := f.postForm("/rooms/cinema/join", url.Values{"customerToken": {token}}, cross...)
	if page.status != 200 || !strings.Contains(string(page.body), `data-state="waiting"`) || strings.Contains(string(page.body), token) {
		t.Fatalf("%d %s", page.status, page.body)
	}
	now := f.send("GET", "/v1/rooms/cinema/place", "")
	if now.num("position") != 2 || !e.line.IsKnown("cinema", "x") && f.cookie("usher_customer_cinema") != "" {
		t.Errorf("%s; the token is kept: %q", now.body, f.cookie("usher_customer_cinema"))
	}
	elsewhere := e.api(t).postJSON("/v1/rooms/cinema/places", `{"customerToken":"`+token+`"}`)
	if elsewhere.text("placeId") != now.text("placeId") {
		t.Errorf("on the other device: %s", elsewhere.body)
	}
	// A form without a token, or of a stranger's with the browser's own place standing.
	if a := e.browser(t).postForm("/rooms/cinema/join", url.Values{}, cross...); a.status != 403 || len(a.header.Values("Set-Cookie")) > 0 {
		t.Errorf("without a token: %d", a.status)
	}
	victim := e.browser(t)
	victim.send("GET", "/rooms/cinema", "")
	mine := victim.join()
	victim.postForm("/rooms/cinema/join", url.Values{"customerToken": {customerToken(t, "mallory")}}, cross...)
	if a := victim.send("GET", "/v1/rooms/cinema/place", ""); a.text("placeId") != mine.text("placeId") {
		t.Errorf("a form exchanged the browser's place: %s", a.body)
	}
}

func TestARoomForKnownCustomersOnly(t *testing.T) {
	t.Parallel()
	e, required := shopEdge(t, 0)
	before := e.browser(t)
	before.send("GET", "/rooms/cinema", "")
	before.join()
	required.Store(true)
	for name, header := range map[string][]string{"nobody": nil, "a program": {"Idempotency-Key", "k"}} {
		a := e.api(t).send("POST", "/v1/rooms/cinema/places", "", header...)
		if a.status != 401 || a.slug() != "customer-token-required" || len(a.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := before.send("GET", "/v1/rooms/cinema/place", ""); a.status != 200 || a.text("status") != "waiting" {
		t.Errorf("a place of before: %s", a.body)
	}
	page := e.browser(t).send("GET", "/rooms/cinema", "")
	if !strings.Contains(string(page.body), `data-state="known"`) {
		t.Errorf("the page: %s", page.body)
	}
	alice := e.browser(t)
	alice.send("GET", "/rooms/cinema", "")
	joined := alice.postJSON("/v1/rooms/cinema/places", `{"customerToken":"`+customerToken(t, "alice")+`"}`)
	if joined.status != 201 {
		t.Fatalf("%d %s", joined.status, joined.body)
	}
	if again := alice.join(); again.text("placeId") != joined.text("placeId") {
		t.Errorf("%s", again.body)
	}
	if again := e.api(t).join(bearer(joined)...); again.text("placeId") != joined.text("placeId") {
		t.Errorf("%s", again.body)
	}
	// Left: joining again by the place's own token stays the customer's.
	if a := alice.send("DELETE", "/v1/rooms/cinema/place", ""); a.status != http.StatusNoContent {
		t.Errorf("%d", a.status)
	}
	if again := e.api(t).join(bearer(joined)...); again.status != 201 || again.text("placeId") != joined.text("placeId") {
		t.Errorf("%d %s", again.status, again.body)
	}
}
