package queuehttp

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"usher/queue"
	"usher/queue/limits"
)

func TestAPlaceMovesByItsCode(t *testing.T) {
	t.Parallel()
	e := newEdgeWith(t, 0, 10, func(o *Options) { o.PublicURL = "https://queue.example" })
	e.api(t).join("Idempotency-Key", "first")
	phone, laptop := e.browser(t), e.browser(t)
	phone.send("GET", "/rooms/cinema", "")
	laptop.send("GET", "/rooms/cinema", "")
	old := phone.join()
	e.api(t).join("Idempotency-Key", "last")
	code := phone.send("POST", "/v1/rooms/cinema/place/move", "")
	if code.status != 201 || !regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{5}-[0-9A-HJKMNP-TV-Z]{5}$`).MatchString(code.text("code")) ||
		code.text("url") != "https://queue.example/rooms/cinema/move#"+code.text("code") {
		t.Fatalf("%d %s", code.status, code.body)
	}
	if at, err := time.Parse(time.RFC3339, code.text("expiresAt")); err != nil || time.Until(at) > queue.MoveLife || time.Until(at) < queue.MoveLife-time.Minute {
		t.Errorf("expires %s", code.text("expiresAt"))
	}
	svg := xml.NewDecoder(strings.NewReader(code.text("qrSvg")))
	for {
		if _, err := svg.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture: %v", err)
		}
	}
	body := `{"moveCode":"` + code.text("code") + `"}`
	for range 2 { // the second is a lost reply's
		a := laptop.postJSON("/v1/rooms/cinema/places", body)
		if a.status != 200 || a.num("position") != 2 || a.text("placeId") == old.text("placeId") {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if a := e.api(t).postJSON("/v1/rooms/cinema/places", body, "Idempotency-Key", "thief"); a.status != 404 || a.slug() != "move-code-invalid" {
		t.Errorf("another browser: %d %s", a.status, a.body)
	}
	if a := phone.send("GET", "/v1/rooms/cinema/place", ""); a.text("status") != "left" || a.doc["moved"] != true {
		t.Errorf("the old browser: %s", a.body)
	}
	if a := phone.send("GET", "/rooms/cinema", ""); !strings.Contains(string(a.body), `data-state="moved"`) {
		t.Errorf("the old browser's page: %s", a.body)
	}
	if a := laptop.send("GET", "/v1/rooms/cinema/place", ""); a.num("position") != 2 || a.doc["moved"] != nil {
		t.Errorf("the new browser: %s", a.body)
	}
	if a := phone.send("POST", "/v1/rooms/cinema/place/move", ""); a.status != 409 || a.slug() != "place-expired" {
		t.Errorf("a code of the place that is gone: %d %s", a.status, a.body)
	}
	if logs := e.logs.String(); strings.Contains(logs, code.text("code")) {
		t.Error("the code is in the log")
	}
}

// Without script the page's form shows the code, and the code moves the place.
func TestTheFormShowsACode(t *testing.T) {
	t.Parallel()
	e := newEdgeWith(t, 0, 10, func(o *Options) { o.PublicURL = "https://queue.example" })
	phone, laptop, nobody := e.browser(t), e.browser(t), e.browser(t)
	for _, b := range []fan{phone, laptop, nobody} {
		b.send("GET", "/rooms/cinema", "")
	}
	phone.join()
	const form = "/rooms/cinema/device"
	a := phone.send("POST", form, "", "Sec-Fetch-Site", "same-origin", "Content-Type", "application/x-www-form-urlencoded")
	shown := regexp.MustCompile(`id="code">([0-9A-Z]{5}-[0-9A-Z]{5})<`)
	code := shown.FindSubmatch(a.body)
	if a.status != 200 || code == nil || !strings.Contains(string(a.body), "data:image/svg") || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %s", a.status, a.header, a.body)
	}
	if a := phone.send("POST", form, "", "Sec-Fetch-Site", "cross-site"); a.status != 403 || shown.Match(a.body) {
		t.Errorf("a foreign page's form: %d %s", a.status, a.body)
	}
	if a := nobody.send("POST", form, "", "Sec-Fetch-Site", "same-origin"); a.status != 200 || shown.Match(a.body) || !strings.Contains(string(a.body), `data-state="join"`) {
		t.Errorf("a fan without a place: %d %s", a.status, a.body)
	}
	if a := laptop.postJSON("/v1/rooms/cinema/places", `{"moveCode":"`+string(code[1])+`"}`); a.status != 200 || a.num("position") != 1 {
		t.Errorf("the code: %d %s", a.status, a.body)
	}
	if a := phone.send("GET", form, ""); a.status != 200 || shown.Match(a.body) || !strings.Contains(string(a.body), `data-state="moved"`) {
		t.Errorf("a reload of the code's page leads to %d %s", a.status, a.body)
	}
}

// A code is worth the place: a place that is bound to a browser gives none to whoever
// holds its token alone.
func TestAStolenTokenGetsNoCode(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	joined := e.api(t).join("Cookie", "usher_fan="+newFan())
	for name, header := range map[string][]string{
		"the token": bearer(joined), "with a fan of their own": append(bearer(joined), "Cookie", "usher_fan="+newFan()),
	} {
		if a := e.api(t).send("POST", "/v1/rooms/cinema/place/move", "", header...); a.status != 409 || a.slug() != "binding-lost" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := e.api(t).send("POST", "/v1/rooms/cinema/place/move", ""); a.status != 401 {
		t.Errorf("nobody: %d", a.status)
	}
	if a := e.api(t).send("POST", "/v1/rooms/cinema/place/move", "", append(bearer(joined)[:0:0], "Origin", "https://evil.example")...); a.status != 403 {
		t.Errorf("a foreign page: %d", a.status)
	}
	if a := e.api(t).postJSON("/v1/rooms/cinema/place/move", `{"keep":1}`, bearer(joined)...); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestGuessingCodesIsLimited(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10, func(o *queue.Options) {
		o.Guesses = func(string) limits.Rate { return limits.Rate{PerMinute: 1, Burst: 5} }
	})
	for i := range 7 {
		a := e.api(t).postJSON("/v1/rooms/cinema/places", fmt.Sprintf(`{"moveCode":"00000-0000%d"}`, i), "Idempotency-Key", "guesser")
		if want := map[bool]int{true: 404, false: 429}[i < 5]; a.status != want || want == 429 && a.header.Get("Retry-After") == "" {
			t.Errorf("guess %d: %d %s", i+1, a.status, a.body)
		}
	}
	page := e.browser(t).postForm("/rooms/cinema/move", url.Values{"moveCode": {"00000-00000"}})
	if page.status != 429 || !strings.Contains(string(page.body), "a lot of tries") {
		t.Errorf("%d %s", page.status, page.body)
	}
}

func TestMovingWithoutScript(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	e.api(t).join("Idempotency-Key", "first")
	old := e.api(t).join("Idempotency-Key", "phone")
	code := e.api(t).send("POST", "/v1/rooms/cinema/place/move", "", bearer(old)...)
	f := e.browser(t)
	page := f.send("GET", "/rooms/cinema/move", "")
	if page.status != 200 || !strings.Contains(string(page.body), `name="moveCode"`) {
		t.Fatalf("%d %s", page.status, page.body)
	}
	for typed, want := range map[string]int{"": 404, "nonsense": 404, "00000-00000": 404} {
		if a := f.postForm("/rooms/cinema/move", url.Values{"moveCode": {typed}}); a.status != want || !strings.Contains(string(a.body), `role="status"`) {
			t.Errorf("%q: %d", typed, a.status)
		}
	}
	if a := f.postForm("/rooms/cinema/move", url.Values{"moveCode": {code.text("code")}}, "Origin", "https://evil.example"); a.status != 403 {
		t.Errorf("a foreign form: %d", a.status)
	}
	whole := code.text("url") // pasted
	if a := f.postForm("/rooms/cinema/move", url.Values{"moveCode": {" " + whole}}); a.status != 200 || !strings.Contains(string(a.body), `data-state="waiting"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := f.send("GET", "/v1/rooms/cinema/place", ""); a.num("position") != 2 {
		t.Errorf("%s", a.body)
	}
	if a := f.send("GET", "/rooms/nowhere/move", ""); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}

var shownCode = regexp.MustCompile(`id="code">([0-9A-Z]{5}-[0-9A-Z]{5})<`)

// A browser that keeps no cookies and runs no script has its place in a code: the join
// tells it, and each visit shows the place, to the box office's door.
func TestAPlaceWithoutCookiesAndScript(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	e.api(t).join("Idempotency-Key", "first")
	f := e.api(t)
	own := []string{"Origin", e.base, "Sec-Fetch-Site", "same-origin"}
	page := f.postForm("/rooms/cinema/join", url.Values{}, own...)
	found := shownCode.FindSubmatch(page.body)
	if page.status != 200 || found == nil {
		t.Fatalf("%d %s", page.status, page.body)
	}
	code := string(found[1])
	for range 3 { // again and again, from nothing but the code
		page = f.postForm("/rooms/cinema/move", url.Values{"moveCode": {code}}, own...)
		if found := shownCode.FindSubmatch(page.body); found == nil || string(found[1]) != code || !strings.Contains(string(page.body), `data-len="1">2<`) {
			t.Fatalf("%d %s", page.status, page.body)
		}
	}
	if v, err := e.line.Room("cinema"); err != nil || v.Waiting > 2 {
		t.Errorf("%d wait, %v", v.Waiting, err)
	}
	if a := f.postForm("/rooms/cinema/enter", url.Values{"moveCode": {code}}, own...); a.status != 200 || !shownCode.Match(a.body) {
		t.Errorf("too early: %d %s", a.status, a.body)
	}
	e.settings(t, "cinema", 2, 60_000, 10, "open")
	deadline := time.Now().Add(20 * time.Second)
	for {
		page = f.postForm("/rooms/cinema/enter", url.Values{"moveCode": {code}}, own...)
		if strings.Contains(string(page.body), `name="pass"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("never inside: %d %s", page.status, page.body)
		}
		time.Sleep(50 * time.Millisecond)
	}
	// The reply was lost: the same code, the same pass.
	first := regexp.MustCompile(`name="pass" value="([^"]+)"`).FindSubmatch(page.body)
	page = f.postForm("/rooms/cinema/enter", url.Values{"moveCode": {code}}, own...)
	again := regexp.MustCompile(`name="pass" value="([^"]+)"`).FindSubmatch(page.body)
	if again == nil || e.claims(t, string(first[1])).ID != e.claims(t, string(again[1])).ID {
		t.Errorf("%d %s", page.status, page.body)
	}
}
