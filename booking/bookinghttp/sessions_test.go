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
	if !strings.Contains(gone.header.Get("Set-Cookie"), SessionCookie+"=;") {
		t.Errorf("the cookie stays: %q", gone.header.Get("Set-Cookie"))
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
