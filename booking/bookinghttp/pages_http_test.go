package bookinghttp

import (
	"regexp"
	"strings"
	"testing"

	"usher/booking/bookingtest"
)

// TestPagesOverHTTP asks for each page as a browser does: status, language, policy,
// and that no answer may be kept by a cache.
func TestPagesOverHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"/", 200, "http://edge.test/rooms/room"},
		{"/enter", 200, "http://edge.test/"},
		{"/enter?room=room", 200, "http://edge.test/rooms/room"},
		{"/enter?room=nowhere", 404, ""},
		{"/book/room", 200, `id="map"`},
		{"/book/room?showtime=show", 200, `id="map"`},
		{"/book/room?showtime=another", 404, ""},
		{"/book/nowhere", 404, ""},
		{"/bookings/0192f0c1-2222-7333-8444-0123456789ab", 404, ""},
		{"/bookings/not-an-id", 404, ""},
	} {
		r := h.do("GET", tt.path, nil, "Accept-Language", "pt-PT, en;q=0.3")
		if r.status != tt.status || !strings.Contains(string(r.body), tt.want) {
			t.Errorf("GET %s: %d, want %d with %q", tt.path, r.status, tt.status, tt.want)
		}
		csp := r.header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("GET %s: policy %q", tt.path, csp)
		}
		if got := r.header.Get("Content-Language"); got != "pt-BR" {
			t.Errorf("GET %s: language %q", tt.path, got)
		}
		if got := r.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("GET %s: Cache-Control %q", tt.path, got)
		}
	}
}

var staticLink = regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"`)

func TestTheShopKnowsWhoMayChoose(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	looking := h.do("GET", "/book/room", nil)
	if !strings.Contains(string(looking.body), `"session":false`) {
		t.Error("without a session the page says that there is one")
	}
	inside := h.do("GET", "/book/room", nil, "Cookie", SessionCookie+"="+h.session("fan"))
	if !strings.Contains(string(inside.body), `"session":true`) {
		t.Error("with a session the page says that there is none")
	}
	forged := h.do("GET", "/book/room", nil, "Cookie", SessionCookie+"=forged")
	if forged.status != 200 || !strings.Contains(string(forged.body), `"session":false`) {
		t.Errorf("a forged cookie: %d, it must be as if there were none", forged.status)
	}
	links := staticLink.FindAllStringSubmatch(string(inside.body), -1)
	if len(links) < 10 {
		t.Fatalf("only %d static files", len(links))
	}
	for _, link := range links {
		r := h.do("GET", link[1], nil)
		if r.status != 200 || !strings.Contains(r.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, Cache-Control %q", link[1], r.status, r.header.Get("Cache-Control"))
		}
	}
}

func TestEnterSendsAKnownFanOn(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	cookie := SessionCookie + "=" + h.session("fan")
	r := h.do("GET", "/enter?room=room", nil, "Cookie", cookie)
	if r.status != 303 || r.header.Get("Location") != "/book/room" {
		t.Errorf("%d to %q", r.status, r.header.Get("Location"))
	}
}

// TestOtherPeoplesBookingsAreNotFound: the page of a booking is its customer's only.
func TestOtherPeoplesBookingsAreNotFound(t *testing.T) {
	t.Parallel()
	h := payingHouse(t, bookingtest.Hall{})
	mine, other := h.session("fan"), h.session("stranger")
	out := h.checkout(mine, h.holdFor(mine, "A1"), "key-of-the-first-try")
	path := "/bookings/" + out.text("bookingId")
	own := h.do("GET", path, nil, "Cookie", SessionCookie+"="+mine)
	if own.status != 200 || !strings.Contains(string(own.body), `data-show="checking"`) {
		t.Errorf("my booking: %d", own.status)
	}
	for name, cookie := range map[string]string{"a stranger": other, "nobody": ""} {
		if r := h.do("GET", path, nil, "Cookie", SessionCookie+"="+cookie); r.status != 404 || strings.Contains(string(r.body), "A1") {
			t.Errorf("%s sees my booking: %d", name, r.status)
		}
	}
}
