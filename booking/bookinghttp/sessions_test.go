package bookinghttp

import (
	"net/url"
	"strings"
	"testing"

	"usher/admission/pass"
	"usher/booking/bookingtest"
)

func TestASessionOverHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	token := h.pass("j", "ann", pass.HashBinding("secret"))
	h.do("POST", "/v1/sessions", map[string]any{"pass": token}).want(403, "binding-required")
	first := h.do("POST", "/v1/sessions", map[string]any{"pass": token, "binding": "secret"})
	first.want(201, "")
	if first.doc()["seatQuota"] != 8.0 || first.text("expiresAt") == "" {
		t.Errorf("got %s", first.body)
	}
	cookie := first.header.Get("Set-Cookie")
	for _, part := range []string{SessionCookie + "=" + first.text("sessionToken"), "HttpOnly", "SameSite=Lax", "path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q lacks %q", cookie, part)
		}
	}
	again := h.do("POST", "/v1/sessions", map[string]any{"pass": token}, "Cookie", SessionCookie+"="+first.text("sessionToken"))
	again.want(200, "")
	if again.text("sessionToken") != first.text("sessionToken") {
		t.Error("the same exchange gave another token")
	}
	h.do("POST", "/v1/sessions", map[string]any{"pass": token, "binding": "guess"}).want(409, "pass-already-used")
	h.do("POST", "/v1/sessions", map[string]any{"pass": token[:40]}).want(401, "pass-invalid")
	h.do("POST", "/v1/sessions", map[string]any{"pass": token, "seat": 1}).want(400, "unknown-field")

	me := bearer(first.text("sessionToken"))
	h.do("GET", "/v1/session", nil, me...).want(200, "")
	gone := h.do("DELETE", "/v1/session", nil, me...)
	gone.want(204, "")
	if got := gone.header.Get("Set-Cookie"); got != "" {
		t.Errorf("the cookie, which still reads this fan's bookings, is touched: %q", got)
	}
	h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": []string{"A1"}}, me...).want(401, "session-ended")
	if r := h.do("GET", "/v1/session", nil, me...); r.status != 200 || r.doc()["ended"] != true {
		t.Errorf("reading an ended session: %d %s", r.status, r.body)
	}
}

func TestEnterTakesAFormFromTheWaitingPageOnly(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	form := url.Values{"pass": {h.pass("j", "ann", pass.HashBinding("secret"))}, "binding": {"secret"}}.Encode()
	post := func(headers ...string) reply {
		return h.do("POST", "/enter", form, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
	}
	post("Origin", "https://evil.test").want(403, "cross-site-request")
	post("Origin", "null", "Sec-Fetch-Site", "cross-site").want(403, "cross-site-request")
	for _, headers := range [][]string{{"Origin", "http://edge.test"}, {"Origin", "null", "Sec-Fetch-Site", "same-site"}, {}} {
		r := post(headers...)
		if r.status != 303 || r.header.Get("Location") != "/book/room" || !strings.Contains(r.header.Get("Set-Cookie"), SessionCookie+"=") {
			t.Errorf("%v: %d to %q, cookie %q", headers, r.status, r.header.Get("Location"), r.header.Get("Set-Cookie"))
		}
	}
}

// A refused exchange must leave the pass as it was.
func TestARefusedOriginDoesNotUseUpThePass(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	body := map[string]any{"pass": h.pass("j", "ann", "")}
	h.do("POST", "/v1/sessions", body, "Origin", "https://evil.test").want(403, "origin-not-allowed")
	h.do("POST", "/v1/sessions", body).want(201, "")
}

func TestEnterReadsTheFormAlone(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	token := h.pass("j", "ann", "")
	json := []string{"Accept", "application/json", "Content-Type"}
	h.do("POST", "/enter?pass="+token, "", append(json, "application/x-www-form-urlencoded")...).want(401, "pass-invalid")
	part := "--b\r\nContent-Disposition: form-data; name=\"pass\"\r\n\r\n" + token + "\r\n--b--\r\n"
	h.do("POST", "/enter", part, append(json, "multipart/form-data; boundary=b")...).want(415, "unsupported-media-type")
	h.do("POST", "/enter", "x", append(json, "application/x-www-form-urlencoded", "Content-Encoding", "gzip")...).want(415, "unsupported-media-type")
	h.do("POST", "/v1/sessions", map[string]any{"pass": token}).want(201, "")
}

func TestABrowserThatMayNotEnterIsToldWhyOnAPage(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	post := func(token, accept string) reply {
		return h.do("POST", "/enter", url.Values{"pass": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", accept)
	}
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	bound, used := h.pass("bound", "ann", pass.HashBinding("secret")), h.pass("used", "bob", "")
	post(used, browser)
	for _, c := range []struct{ token, to, slug string }{
		{bound, "/enter?room=room&why=binding-required", "binding-required"},
		{used, "/enter?room=room&why=pass-already-used", "pass-already-used"},
		{"nonsense", "/enter?why=pass-invalid", "pass-invalid"},
	} {
		r := post(c.token, browser)
		if r.status != 303 || r.header.Get("Location") != c.to {
			t.Errorf("%s: %d to %q", c.slug, r.status, r.header.Get("Location"))
		}
		if r = post(c.token, "application/json"); r.problem() != c.slug {
			t.Errorf("%s as JSON: %d %s", c.slug, r.status, r.body)
		}
		page := h.do("GET", c.to, nil)
		if page.status != 200 || !strings.Contains(string(page.body), `class="banner warn"`) {
			t.Errorf("GET %s: %d, and no reason", c.to, page.status)
		}
	}
	if r := h.do("GET", "/enter?why=because", nil); r.status != 200 || strings.Contains(string(r.body), `class="banner warn"`) {
		t.Errorf("a reason of a stranger's: %d", r.status)
	}
}

func TestOnlyAllowedOriginsMayCallAndNeverWithCookies(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{}, func(o *Options) {
		o.AllowedOrigins = func(room string) []string {
			switch room {
			case "":
				return []string{"https://shop.test", "https://other.test"}
			case "room":
				return []string{"https://shop.test"}
			}
			return nil
		}
	})
	ask := []string{"Access-Control-Request-Method", "POST", "Origin"}
	ok := h.do("OPTIONS", "/v1/showtimes/show/holds", nil, append(ask, "https://shop.test")...)
	if ok.status != 204 || ok.header.Get("Access-Control-Allow-Origin") != "https://shop.test" || ok.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", ok.status, ok.header)
	}
	h.do("OPTIONS", "/v1/showtimes/show/holds", nil, append(ask, "https://evil.test")...).want(403, "origin-not-allowed")
	me := bearer(h.session("ann"))
	hold := map[string]any{"seats": []string{"A1"}}
	h.do("POST", "/v1/showtimes/show/holds", hold, append(me[:2:2], "Origin", "https://other.test")...).want(403, "origin-not-allowed")
	h.do("POST", "/v1/showtimes/show/holds", hold, append(me[:2:2], "Origin", "https://shop.test")...).want(201, "")
	// A cookie proves nothing from there.
	h.do("DELETE", "/v1/session", nil, "Cookie", SessionCookie+"="+me[1][7:], "Origin", "https://shop.test").want(403, "cross-site-request")
	h.do("DELETE", "/v1/session", nil, "Cookie", SessionCookie+"="+me[1][7:], "Origin", h.url).want(204, "")
}

func TestFiftyForeignCookiesAreIgnored(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	me := h.session("ann")
	cookies := strings.Repeat("x=%%%; usher_place_room=broken; ", 50) + SessionCookie + "=" + me
	h.do("GET", "/v1/session", nil, "Cookie", cookies).want(200, "")
}
