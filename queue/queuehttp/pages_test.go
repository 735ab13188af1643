package queuehttp

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"usher/queue"
)

func TestWaitingPageWithoutScript(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	v := h.visitor()
	resp, body := v.page()
	if resp.StatusCode != 200 || stateIn(body) != stateJoin {
		t.Fatalf("first visit: %d %q", resp.StatusCode, stateIn(body))
	}
	if !strings.Contains(strings.Join(resp.Header.Values("Set-Cookie"), "\n"), fanCookie+"=") {
		t.Error("the page sets no fan cookie, so the join would not be bound to this browser")
	}
	_, body = v.form("join")
	if stateIn(body) != stateWaiting || positionIn(body) != 1 || !strings.Contains(body, `<noscript><meta http-equiv="refresh"`) {
		t.Fatalf("joined: state %q position %d", stateIn(body), positionIn(body))
	}
	if strings.Contains(body, `name="pass"`) {
		t.Error("a waiting fan got a pass")
	}
	if _, early := v.form("enter"); stateIn(early) != stateWaiting {
		t.Errorf("entering before the call: %q", stateIn(early))
	}
	h.set("open", 6000, 5)
	body = v.until(stateCalled)
	if !strings.Contains(body, "Your turn! · The Hall") {
		t.Error("the title does not say so")
	}
	resp, body = v.form("enter")
	if got := find(actionRE, body); got != h.booking.URL+"/enter" {
		t.Fatalf("the form goes to %q\n%s", got, body)
	}
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' "+h.booking.URL+";") {
		t.Errorf("the policy forbids that form: %s", csp)
	}
	sent := url.Values{}
	for _, m := range hiddenRE.FindAllStringSubmatch(body, -1) {
		sent.Set(m[1], m[2])
	}
	v.do(http.MethodPost, h.booking.URL+"/enter", sent)
	if got := h.visits(); len(got) != 1 || strings.Count(got[0].Get("pass"), ".") != 2 || got[0].Get("binding") == "" {
		t.Fatalf("the box office got %v", got)
	}
	// Asked again (lost reply, back button): the very same pass.
	_, body = v.form("enter")
	again := map[string]string{}
	for _, m := range hiddenRE.FindAllStringSubmatch(body, -1) {
		again[m[1]] = m[2]
	}
	if again["pass"] != sent.Get("pass") {
		t.Error("asked twice, the pass is another one")
	}
	if body = v.until(stateAdmitted); stateIn(body) != stateAdmitted {
		t.Error("not admitted")
	}
}

func TestQ7_PageReloadSecondTabAndBackKeepThePlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(3)
	v := h.visitor()
	v.page()
	_, body := v.form("join")
	if positionIn(body) != 4 {
		t.Fatalf("position %d, want 4", positionIn(body))
	}
	h.fill(10) // the same three and seven more, all behind
	for i := range 100 {
		if _, body = v.page(); positionIn(body) != 4 {
			t.Fatalf("reload %d: position %d", i, positionIn(body))
		}
	}
	// A second tab joins again; the back arrow asks for the form's address.
	if _, body = v.form("join"); positionIn(body) != 4 {
		t.Fatalf("second tab: position %d", positionIn(body))
	}
	if _, body = v.do(http.MethodGet, h.base+"/rooms/hall/join", nil); positionIn(body) != 4 {
		t.Fatalf("back: position %d", positionIn(body))
	}
	if room, err := h.line.Room(h.room); err != nil || room.Waiting > 11 {
		t.Fatalf("waiting %d (%v): a reload made a place", room.Waiting, err)
	}
}

func TestQ8_TheShownPositionNeverGrows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(5)
	v := h.visitor()
	v.page()
	_, body := v.form("join")
	if positionIn(body) != 6 {
		t.Fatalf("position %d", positionIn(body))
	}
	// As room.js does: this browser has seen 2 since.
	u, err := url.Parse(h.base + "/rooms")
	if err != nil {
		t.Fatal(err)
	}
	key := ""
	for _, c := range v.Jar.Cookies(u.JoinPath("hall")) {
		if c.Name == shownCookie(h.room) {
			key, _, _ = strings.Cut(c.Value, ".")
		}
	}
	set := func(value string) {
		v.Jar.SetCookies(u.JoinPath("hall"), []*http.Cookie{{Name: shownCookie(h.room), Value: value, Path: "/rooms"}}) //nolint:gosec // a browser's, as its script writes it
	}
	set(key + ".6.2")
	if _, body = v.page(); positionIn(body) != 2 || !strings.Contains(body, "1 person ahead of you") {
		t.Errorf("seen 2, shown %d", positionIn(body))
	}
	for _, nonsense := range []string{"other123.6.2", key + ".6.0", key + ".1.6", key + ".-5.-9", key, "%00", key + ".99999999999999999999.1", strings.Repeat("9", 3000)} {
		set(nonsense)
		if resp, body := v.page(); resp.StatusCode != 200 || positionIn(body) != 6 {
			t.Errorf("%.40s: %d, position %d", nonsense, resp.StatusCode, positionIn(body))
		}
	}
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	v := h.visitor()
	v.page()
	v.form("join")
	h.fill(2)
	resp, body := v.form("leave")
	if stateIn(body) != stateLeft || resp.Request.URL.RawQuery != "left=1" {
		t.Fatalf("%q at %s", stateIn(body), resp.Request.URL)
	}
	if _, body = v.form("leave"); stateIn(body) != stateLeft {
		t.Errorf("leaving twice: %q", stateIn(body))
	}
	if _, body = v.form("join"); positionIn(body) != 3 {
		t.Errorf("joined again at %d, want the end (3)", positionIn(body))
	}
}

func TestFormsOfForeignPagesChangeNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	v := h.visitor()
	v.page()
	v.form("join")
	for _, verb := range []string{"join", "enter", "leave"} {
		for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", h.booking.URL}, {"Origin", "", "Sec-Fetch-Site", "cross-site"}} {
			for _, visitor := range []*visitor{v, h.visitor()} { // whose browser keeps cookies out of it
				resp, body := visitor.do(http.MethodPost, h.base+"/rooms/hall/"+verb+"?lang=es", nil, header...)
				if resp.StatusCode != 403 || len(resp.Header.Values("Set-Cookie")) > 0 {
					t.Errorf("%s %v: %d, sets %v", verb, header, resp.StatusCode, resp.Header.Values("Set-Cookie"))
				}
				if strings.Contains(body, "room.") && strings.Contains(body, "<script") || !strings.Contains(body, `href="/rooms/hall"`) {
					t.Errorf("%s: the page has a script that joins, or no way on:\n%s", verb, body)
				}
			}
		}
	}
	if _, body := v.page(); stateIn(body) != stateWaiting || positionIn(body) != 1 {
		t.Errorf("afterwards: %q at %d", stateIn(body), positionIn(body))
	}
	if got, err := h.line.Room("hall"); err != nil || got.Waiting > 1 {
		t.Errorf("%d wait, %v", got.Waiting, err)
	}
}

func TestRoomStatesOnThePage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	v := h.visitor()
	v.page()
	v.form("join")
	await := func(want string) {
		t.Helper()
		deadline := time.Now().Add(10 * time.Second)
		for {
			_, body := v.page()
			if strings.Contains(body, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("page never said %q", want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	h.set("paused", 60, 5)
	await(`data-banner="paused"><strong>`)
	h.set("closed", 60, 5)
	await(`data-state="closed"`)
	if _, body := h.visitor().form("join"); stateIn(body) != stateClosed {
		t.Errorf("joining a closed room: %q", stateIn(body))
	}
	h.set("open", 0, 5)
	await(`data-state="waiting"`)
	if resp, body := v.do(http.MethodGet, h.base+"/rooms/nowhere", nil); resp.StatusCode != 404 || !strings.Contains(body, "There is no such room") {
		t.Errorf("unknown room: %d", resp.StatusCode)
	}
	if resp, _ := v.do(http.MethodPost, h.base+"/rooms/nowhere/join", nil); resp.StatusCode != 404 {
		t.Errorf("joining an unknown room: %d", resp.StatusCode)
	}
	if _, body := v.do(http.MethodGet, h.base+"/", nil); !strings.Contains(body, `href="/rooms/hall"`) || !strings.Contains(body, "The Hall") {
		t.Error("the list of rooms lacks the room")
	}
}

func TestHeadersAndLanguages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	v := h.visitor()
	resp, _ := v.page()
	want := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; form-action 'self' " +
		h.booking.URL + "; base-uri 'none'; frame-ancestors 'none'"
	if got := resp.Header.Get("Content-Security-Policy"); got != want {
		t.Errorf("policy\n got %s\nwant %s", got, want)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Language": "en", "Content-Type": "text/html; charset=utf-8"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	_, body := v.do(http.MethodGet, h.base+"/rooms/hall?lang=pt-BR", nil)
	if !strings.Contains(body, `<html lang="pt-BR">`) || !strings.Contains(body, "Entrar na fila") {
		t.Error("no Portuguese")
	}
	if _, body = v.form("join"); !strings.Contains(body, "Seu lugar na fila") {
		t.Error("the choice of language was not kept")
	}
	if _, body = h.visitor().do(http.MethodGet, h.base+"/rooms/hall", nil, "Accept-Language", "es-AR,es;q=0.9"); !strings.Contains(body, "Entrar en la fila") {
		t.Error("Accept-Language is not heard")
	}
}

// With nothing known about the room and Redis away, the page says so, promises
// nothing, and tries again by itself.
func TestTroublePage(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	line, err := queue.New(rdb, queue.Options{PlaceSecrets: [][]byte{bytes.Repeat([]byte("p"), 32)}})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, room: "hall", line: line}
	h.serve()
	v := h.visitor()
	for range 2 {
		resp, body := v.page()
		if resp.StatusCode != 503 || stateIn(body) != stateTrouble || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, `http-equiv="refresh" content="15"`) {
			t.Fatalf("%d %q %s", resp.StatusCode, stateIn(body), body)
		}
	}
	if resp, body := v.form("join"); resp.StatusCode != 503 || stateIn(body) != stateTrouble {
		t.Errorf("joining: %d %q", resp.StatusCode, stateIn(body))
	}
	if resp, _ := v.do(http.MethodGet, h.base+"/", nil); resp.StatusCode != 200 {
		t.Errorf("the list of rooms: %d", resp.StatusCode)
	}
}
