package queuehttp

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"usher/internal/basehttp"
	"usher/queue"
)

// Another site's page may submit a form here: the browser leaves our cookies at home,
// but would take new ones from the answer.
func TestOtherSitesPagesCannotReplaceAFansPlace(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for name, header := range map[string][]string{
		"a foreign page":        {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"a foreign form":        append([]string{"Origin", "https://evil.example"}, form...),
		"a sandboxed frame":     {"Origin", "null"},
		"without an Origin":     {"Sec-Fetch-Site", "cross-site"},
		"a neighbour":           {"Sec-Fetch-Site", "same-site"},
		"same host, other port": {"Origin", "http://127.0.0.1:1"},
	} {
		for _, call := range []struct{ method, path string }{
			{"POST", "/v1/rooms/cinema/places"}, {"POST", "/v1/rooms/cinema/pass"}, {"DELETE", "/v1/rooms/cinema/place"},
		} {
			a := e.api(t).send(call.method, call.path, "", header...)
			if a.status != 403 || a.slug() != "cross-site-request" || len(a.header.Values("Set-Cookie")) > 0 {
				t.Errorf("%s, %s %s: %d %s, sets %v", name, call.method, call.path, a.status, a.body, a.header.Values("Set-Cookie"))
			}
		}
	}
	if v, err := e.line.Room("cinema"); err != nil || v.Waiting != 0 {
		t.Errorf("%d wait, %v", v.Waiting, err)
	}
	// Our own page, a program, and a token in a header are nobody else's form.
	f := e.browser(t)
	joined := f.join("Origin", e.base, "Sec-Fetch-Site", "same-origin")
	e.api(t).join()
	e.browser(t).join("Origin", "https://tickets.example", "Sec-Fetch-Site", "same-origin") // a proxy changed the Host
	if a := e.api(t).send("DELETE", "/v1/rooms/cinema/place", "", append(bearer(joined), "Origin", "https://app.example")...); a.status != 204 {
		t.Errorf("with a Bearer: %d %s", a.status, a.body)
	}
}

func TestALostBindingBurnsNoSlot(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 60_000, 10)
	mine := newFan()
	joined := e.api(t).join("Cookie", "usher_fan="+mine) // bound
	place := "usher_place_cinema=" + joined.text("token")
	for name, cookies := range map[string]string{"lost": place, "another's": place + "; usher_fan=" + newFan()} {
		a := e.api(t).send("POST", "/v1/rooms/cinema/pass", "", "Cookie", cookies)
		if a.status != 409 || a.slug() != "binding-lost" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		v, err := e.line.Status(t.Context(), "cinema", queue.Token(joined.text("token")), 0)
		if err == nil && v.Status == queue.Called {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, %v", v, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	a := e.api(t).send("POST", "/v1/rooms/cinema/pass", "", "Cookie", place)
	v, err := e.line.Status(t.Context(), "cinema", queue.Token(joined.text("token")), 0)
	if a.slug() != "binding-lost" || err != nil || v.Status != queue.Called || v.StandingBy {
		t.Errorf("called: %s; then %+v, %v", a.body, v, err)
	}
	// The browser that has it, whatever comes beside it.
	got := e.api(t).pass("Cookie", "usher_fan="+newFan()+"; "+place+"; usher_fan="+mine)
	if c := e.claims(t, got.text("pass")); c.BindingHash == "" || !c.Bound(got.text("binding")) {
		t.Errorf("%+v, %s", c, got.body)
	}
}

func TestOfSeveralCookiesTheOneThatFitsCounts(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	mine := newFan()
	joined := e.api(t).join("Cookie", "usher_fan="+mine)
	place := "usher_place_cinema=" + joined.text("token")
	forged := "usher_place_cinema=" + base64.RawURLEncoding.EncodeToString(make([]byte, 110))
	other := "usher_fan=" + newFan()
	for name, cookies := range map[string]string{
		"a forged place first":       forged + "; " + place + "; usher_fan=" + mine,
		"a broken fan first":         "usher_fan=x; usher_fan=" + mine,
		"another fan first":          other + "; " + place + "; usher_fan=" + mine,
		"another fan, and the place": other + "; " + place,
		"the place alone":            place,
		"a forged place before it":   forged + "; " + place,
	} {
		a := e.api(t).join("Cookie", cookies)
		if a.status != 200 || a.text("placeId") != joined.text("placeId") {
			t.Errorf("%s: joined as another: %d %s", name, a.status, a.body)
		}
		for _, c := range a.header.Values("Set-Cookie") {
			if strings.HasPrefix(c, "usher_fan=") {
				t.Errorf("%s: given another identity", name)
			}
		}
	}
	if a := e.api(t).join("Cookie", other); a.status != 201 {
		t.Errorf("another fan without the place: %d", a.status)
	}
}

func TestNoPlacesBeforeTheDoors(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 60, 10)
	opens := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := queue.Settings{
		Room: "cinema", Title: "Cinema", Mode: "fifo", State: "scheduled", RatePerMinute: 60, Cap: 10, Run: 1, Version: 2, OpensAt: opens,
	}
	put := func() {
		t.Helper()
		if err := e.line.PutSettings(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	put()
	a := e.api(t).send("POST", "/v1/rooms/cinema/places", "")
	if a.status != 409 || a.slug() != "room-not-open-yet" || a.text("opensAt") != "2030-01-02T03:04:05.000Z" || len(a.header.Values("Set-Cookie")) > 0 {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.Version, s.OpensAt = 3, time.Time{}
	put()
	a = e.api(t).send("POST", "/v1/rooms/cinema/places", "")
	if _, told := a.doc["opensAt"]; told || a.slug() != "room-not-open-yet" {
		t.Errorf("without a schedule: %s", a.body)
	}
	s.Version, s.State = 4, "gathering"
	put()
	e.api(t).join()
}

func TestARefusedTokenNamesItsScheme(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	for _, header := range [][]string{nil, {"Authorization", "Bearer x"}} {
		if a := e.api(t).send("GET", "/v1/rooms/cinema/place", "", header...); a.status != 401 || a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%d, WWW-Authenticate %q", a.status, a.header.Get("WWW-Authenticate"))
		}
	}
	if a := e.api(t).send("GET", "/v1/rooms/nowhere", ""); a.header.Get("WWW-Authenticate") != "" {
		t.Error("a 404 asks for a token")
	}
}

func TestATroubledLineIsUnavailableAndABugIsNot(t *testing.T) {
	t.Parallel()
	err := problem(fmt.Errorf("%w: join: %w", queue.ErrStale, errors.New("OOM command not allowed")))
	var p *basehttp.Problem
	if !errors.As(err, &p) || p.Status != 503 || p.Slug != "unavailable" || p.RetryAfter <= 0 {
		t.Errorf("a full Redis: %v", err)
	}
	if err := problem(errors.New("queue: join: ERR user_script:9: a mistake")); errors.As(err, &p) {
		t.Errorf("a script's mistake is told as %v", p)
	}
}
