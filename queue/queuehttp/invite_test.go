package queuehttp

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"usher/queue"
)

func TestAnInviteWithoutScript(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	e.api(t).join("Idempotency-Key", "early")
	f := e.browser(t)
	old := f.join()
	if old.num("position") != 2 {
		t.Fatalf("%s", old.body)
	}
	_, token := queue.NewInvite(bytes.Repeat([]byte("s"), 32), "cinema", queue.Bypass, 1, time.Now().Add(time.Hour))
	page := f.send("GET", "/rooms/cinema/invite", "")
	if page.status != 200 || !strings.Contains(string(page.body), `name="invite"`) || !strings.Contains(string(page.body), "/assets/invite") {
		t.Fatalf("%d %s", page.status, page.body)
	}
	post := func(f fan, invite string, header ...string) answer {
		t.Helper()
		return f.send("POST", "/rooms/cinema/invite", url.Values{"invite": {invite}}.Encode(),
			append(header, "Content-Type", "application/x-www-form-urlencoded")...)
	}
	for invite, want := range map[string]int{"": 422, "nonsense": 403, "https://x.example/rooms/cinema/invite#invite=" + token[:40]: 403} {
		if a := post(f, invite); a.status != want || !strings.Contains(string(a.body), `role="status"`) {
			t.Errorf("%q: %d %s", invite, a.status, a.body)
		}
	}
	if a := post(f, token, "Origin", "https://evil.example"); a.status != 403 || len(a.header.Values("Set-Cookie")) > 0 {
		t.Errorf("a foreign page's form: %d", a.status)
	}
	if a := post(f, e.base+"/rooms/cinema/invite#invite="+token+"\n"); a.status != 200 { // led on to the waiting page
		t.Errorf("%d %s", a.status, a.body)
	}
	now := f.send("GET", "/v1/rooms/cinema/place", "")
	if now.num("position") != 1 || now.text("line") != "invited" || now.text("placeId") != old.text("placeId") {
		t.Errorf("%s", now.body)
	}
	if a := post(e.browser(t), token); a.status != 409 || !strings.Contains(string(a.body), "All places of this invite") {
		t.Errorf("used up: %d %s", a.status, a.body)
	}
	if a := f.send("GET", "/rooms/nowhere/invite", ""); a.status != 404 {
		t.Errorf("%d", a.status)
	}
}
