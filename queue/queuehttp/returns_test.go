package queuehttp

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"usher/queue/returnto"
)

const shopPage = "https://shop.example/tickets/7?seat=1&b=2"

// returning is an edge whose rooms send fans back to a shop; the list may be changed.
func returning(t *testing.T, rate int) (e *edge, list *atomic.Pointer[[]returnto.Entry]) {
	t.Helper()
	list = &atomic.Pointer[[]returnto.Entry]{}
	list.Store(&[]returnto.Entry{
		{URL: "https://shop.example/tickets"}, {URL: "https://app.example", Handover: returnto.Cookie},
	})
	e = newEdgeWith(t, rate, 10, func(o *Options) { o.Returns = func(string) []returnto.Entry { return *list.Load() } })
	return e, list
}

// still does not follow redirects.
func (f fan) still() fan {
	c := *f.client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return fan{f.t, f.e, &c}
}

func TestAVisitGoesBackToWhereItCameFrom(t *testing.T) {
	t.Parallel()
	e, list := returning(t, 60_000)
	f := e.browser(t)
	page := f.send("GET", "/rooms/cinema?return="+url.QueryEscape(shopPage), "")
	if page.status != 200 || !strings.Contains(page.header.Get("Content-Security-Policy"), "form-action 'self' http://booking.test https://shop.example;") {
		t.Fatalf("%d %s", page.status, page.header.Get("Content-Security-Policy"))
	}
	f.join()
	got := f.pass()
	if got.text("redirectUrl") != shopPage || got.text("handover") != "post" || got.text("binding") == "" {
		t.Errorf("%s", got.body)
	}
	enter := f.postForm("/rooms/cinema/enter", url.Values{})
	body := string(enter.body)
	for _, want := range []string{`action="https://shop.example/tickets/7?seat=1&amp;b=2"`, `name="pass"`, `name="binding"`, `name="room" value="cinema"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the form misses %s:\n%s", want, body)
		}
	}
	if p := enter.header.Get("Content-Security-Policy"); !strings.Contains(p, "https://shop.example;") {
		t.Errorf("%s", p)
	}
	// Another address for this pass, as a program asks.
	other := f.postJSON("/v1/rooms/cinema/pass", `{"return":"https://app.example/a"}`)
	if other.status != 201 || other.text("redirectUrl") != "https://app.example/a" || other.text("handover") != "cookie" || other.text("pass") != got.text("pass") {
		t.Errorf("%d %s", other.status, other.body)
	}
	bad := f.postJSON("/v1/rooms/cinema/pass", `{"return":"https://shop.example@evil.example/tickets"}`)
	if bad.status != 422 || bad.slug() != "return-not-allowed" {
		t.Errorf("%d %s", bad.status, bad.body)
	}
	// By cookies: a redirect without secrets.
	f.send("GET", "/rooms/cinema?return="+url.QueryEscape("https://app.example/a?x=1"), "")
	away := f.still().postForm("/rooms/cinema/enter", url.Values{})
	if away.status != 303 || away.header.Get("Location") != "https://app.example/a?x=1" {
		t.Errorf("%d %s", away.status, away.header.Get("Location"))
	}
	// Taken off the list meanwhile: the box office.
	list.Store(&[]returnto.Entry{})
	if got := f.pass(); got.text("redirectUrl") != "http://booking.test/enter?room=cinema" || got.doc["handover"] != nil {
		t.Errorf("%s", got.body)
	}
}

func TestAnUnlistedReturnIsToldAndForgotten(t *testing.T) {
	t.Parallel()
	e, _ := returning(t, 60_000)
	f := e.browser(t)
	f.send("GET", "/rooms/cinema?return="+url.QueryEscape(shopPage), "")
	page := f.send("GET", "/rooms/cinema?return="+url.QueryEscape("https://shop.example.evil.example/"), "")
	if page.status != 200 || !strings.Contains(string(page.body), `data-banner="return"><strong>That way back`) || strings.Contains(string(page.body), "evil") ||
		strings.Contains(page.header.Get("Content-Security-Policy"), "shop.example") {
		t.Errorf("%d %s\n%s", page.status, page.header.Get("Content-Security-Policy"), page.body)
	}
	f.join()
	if got := f.pass(); got.text("redirectUrl") != "http://booking.test/enter?room=cinema" {
		t.Errorf("%s", got.body)
	}
	forged := e.api(t).send("GET", "/rooms/cinema", "", "Cookie", "usher_return_cinema=aHR0cHM6Ly9ldmlsLmV4YW1wbGUv") // https://evil.example/
	if strings.Contains(forged.header.Get("Content-Security-Policy"), "evil") || strings.Contains(string(forged.body), "evil") {
		t.Errorf("a cookie made elsewhere: %s", forged.body)
	}
}

func TestOnlyListedOriginsMayCall(t *testing.T) {
	t.Parallel()
	e, _ := returning(t, 0)
	f := e.browser(t)
	f.send("GET", "/rooms/cinema", "")
	listed := []string{"Origin", "https://shop.example", "Sec-Fetch-Site", "same-site"}
	joined := f.join(listed...)
	for name, a := range map[string]answer{
		"join": joined, "poll": f.send("GET", "/v1/rooms/cinema/place", "", listed...), "pass": f.send("POST", "/v1/rooms/cinema/pass", "", listed...),
		"an error": e.api(t).send("GET", "/v1/rooms/cinema/place", "", listed...),
	} {
		if a.header.Get("Access-Control-Allow-Origin") != "https://shop.example" || a.header.Get("Access-Control-Allow-Credentials") != "true" ||
			!strings.Contains(a.header.Get("Vary"), "Origin") || a.slug() == "cross-site-request" {
			t.Errorf("%s: %d %v %s", name, a.status, a.header, a.body)
		}
	}
	pre := e.api(t).send("OPTIONS", "/v1/rooms/cinema/places", "", append(listed, "Access-Control-Request-Method", "POST")...)
	if pre.status != 204 || !strings.Contains(pre.header.Get("Access-Control-Allow-Headers"), "Usher-Customer") || pre.header.Get("Access-Control-Allow-Credentials") != "true" {
		t.Errorf("preflight: %d %v", pre.status, pre.header)
	}
	for _, origin := range []string{"https://evil.example", "http://shop.example", "https://shop.example.evil.example", "https://sub.shop.example", "null"} {
		header := []string{"Origin", origin, "Sec-Fetch-Site", "cross-site"}
		for _, call := range []struct{ method, path string }{
			{"OPTIONS", "/v1/rooms/cinema/places"}, {"POST", "/v1/rooms/cinema/places"}, {"POST", "/v1/rooms/cinema/pass"}, {"DELETE", "/v1/rooms/cinema/place"},
			{"GET", "/v1/rooms/cinema/place"},
		} {
			a := f.send(call.method, call.path, "", header...)
			if a.header.Get("Access-Control-Allow-Origin") != "" || call.method != "GET" && (a.status != 403 || a.slug() != "cross-site-request") {
				t.Errorf("%s, %s %s: %d %v", origin, call.method, call.path, a.status, a.header)
			}
			if !strings.Contains(a.header.Get("Vary"), "Origin") {
				t.Errorf("%s, %s %s may be cached for another origin", origin, call.method, call.path)
			}
		}
	}
	// The pages' forms stay ours alone.
	if a := f.postForm("/rooms/cinema/leave", url.Values{}, listed...); a.status != 403 {
		t.Errorf("a listed origin's form: %d", a.status)
	}
	if a := f.send("GET", "/usher.js", ""); a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), "text/javascript") ||
		a.header.Get("Cross-Origin-Resource-Policy") != "cross-origin" || a.header.Get("Cache-Control") != "public, max-age=300" {
		t.Errorf("the snippet: %d %v", a.status, a.header)
	}
}
