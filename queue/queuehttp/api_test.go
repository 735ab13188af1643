package queuehttp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"usher/queue"
)

func TestTheDocumentsAreAsTheContractSays(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	a := e.browser(t).join()
	if a.status != 201 || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("join: %d, %v", a.status, a.header)
	}
	for _, key := range []string{"placeId", "token", "status", "position", "ahead", "waiting", "eta", "pollAfterMs", "room"} {
		if _, ok := a.doc[key]; !ok {
			t.Errorf("the place has no %s: %s", key, a.body)
		}
	}
	if len(a.text("placeId")) != 32 || a.text("status") != "waiting" || a.num("position") != 1 || a.num("ahead") != 0 {
		t.Errorf("the place: %s", a.body)
	}
	room := e.api(t).send("GET", "/v1/rooms/cinema", "")
	if room.status != 200 || room.header.Get("Cache-Control") != "public, max-age=1" {
		t.Errorf("room: %d, %v", room.status, room.header)
	}
	for _, key := range []string{"room", "title", "state", "mode", "waiting", "ratePerMinute", "opensAt", "inventory", "claimSeconds"} {
		if _, ok := room.doc[key]; !ok {
			t.Errorf("the room has no %s: %s", key, room.body)
		}
	}
	if inv, _ := room.doc["inventory"].(map[string]any); inv["available"] != 12.0 || inv["total"] != 180.0 {
		t.Errorf("inventory: %s", room.body)
	}
	rooms := e.api(t).send("GET", "/v1/rooms", "")
	if list, _ := rooms.doc["rooms"].([]any); rooms.status != 200 || len(list) != 1 {
		t.Errorf("rooms: %s", rooms.body)
	}
	keys := e.api(t).send("GET", "/.well-known/jwks.json", "")
	if list, _ := keys.doc["keys"].([]any); len(list) != 1 || !strings.Contains(keys.header.Get("Cache-Control"), "max-age=60") {
		t.Errorf("keys: %s, %v", keys.body, keys.header)
	}
}

func TestQ7_TheAPIKeepsThePlaceThroughReloadSecondTabAndBack(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	e.browser(t).join()
	f := e.browser(t)
	first := f.join()
	e.browser(t).join()
	same := func(what string, a answer) {
		t.Helper()
		if a.status != 200 || a.text("placeId") != first.text("placeId") || a.num("position") != 2 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	for range 100 {
		same("reload", f.send("GET", "/v1/rooms/cinema/place", ""))
	}
	same("second tab", f.join())
	same("back", f.send("GET", "/v1/rooms/cinema/place?shown=2", ""))
	same("by Bearer", e.api(t).send("GET", "/v1/rooms/cinema/place", "", bearer(first)...))
	same("shown is nonsense", f.send("GET", "/v1/rooms/cinema/place?shown=-5&shown=x", ""))
	// The place cookie is lost, the fan's is not.
	u := f.cookie("usher_fan")
	same("cookie lost", e.api(t).join("Cookie", "usher_fan="+u))
	if e.api(t).join().text("placeId") == first.text("placeId") {
		t.Error("a stranger got the place")
	}
}

func TestTheFullWayToAPass(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 60_000, 10)
	f := e.browser(t)
	f.join()           // sets usher_fan
	joined := f.join() // presents it: bound from now on
	got := f.pass()
	c := e.claims(t, got.text("pass"))
	if c.Room != "cinema" || c.PlaceID != joined.text("placeId") || c.Run != 1 || c.Customer == "" || c.Customer == f.cookie("usher_fan") {
		t.Errorf("claims: %+v", c)
	}
	if got.text("redirectUrl") != "http://booking.test/enter?room=cinema" {
		t.Errorf("redirect: %s", got.body)
	}
	if c.BindingHash == "" || got.text("binding") == "" || !c.Bound(got.text("binding")) {
		t.Errorf("bound: %+v, %s", c, got.body)
	}
	again := f.pass()
	if again.text("pass") != got.text("pass") || again.text("binding") != got.text("binding") {
		t.Error("asked again: another pass")
	}
	if s := f.send("GET", "/v1/rooms/cinema/place", ""); s.text("status") != "admitted" || s.num("position") != 0 {
		t.Errorf("after the pass: %s", s.body)
	}
	// A program that stole the token does not get what it is bound to, nor the pass.
	for name, header := range map[string][]string{
		"without the fan's cookie": bearer(joined), "with another fan's cookie": append(bearer(joined), "Cookie", "usher_fan="+newFan()),
	} {
		if a := e.api(t).send("POST", "/v1/rooms/cinema/pass", "", header...); a.status != 409 || a.slug() != "binding-lost" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

func TestAProgramIsNotBoundAndKeepsItsPlaceByKey(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 60_000, 10)
	a := e.api(t).join("Idempotency-Key", "order-7421")
	b := e.api(t).join("Idempotency-Key", "order-7421")
	if a.status != 201 || b.status != 200 || a.text("placeId") != b.text("placeId") {
		t.Errorf("joined twice by key: %d %d", a.status, b.status)
	}
	for _, c := range a.header.Values("Set-Cookie") {
		if strings.HasPrefix(c, "usher_fan=") {
			t.Error("a join by key was given another identity for the next time")
		}
	}
	got := e.api(t).pass(bearer(a)...)
	if c := e.claims(t, got.text("pass")); c.BindingHash != "" || got.text("binding") != "" {
		t.Errorf("bound: %+v", c)
	}
	if e.api(t).join("Idempotency-Key", "order-7422").text("placeId") == a.text("placeId") {
		t.Error("another key, the same place")
	}
}

func TestQ11_ThePlaceIdIsWorthNothing(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 60_000, 10)
	victim := e.api(t).join()
	id := victim.text("placeId")
	thief := e.api(t)
	for name, header := range map[string][]string{
		"as Bearer": {"Authorization", "Bearer " + id},
		"as cookie": {"Cookie", "usher_place_cinema=" + id + "; usher_fan=" + id},
		"as a key":  {"Idempotency-Key", id},
	} {
		for _, call := range []struct{ method, path string }{
			{"GET", "/v1/rooms/cinema/place"}, {"POST", "/v1/rooms/cinema/pass"}, {"DELETE", "/v1/rooms/cinema/place"},
		} {
			if a := thief.send(call.method, call.path, "", header...); a.status != 401 {
				t.Errorf("%s, %s %s: %d %s", name, call.method, call.path, a.status, a.body)
			}
		}
		if a := thief.send("POST", "/v1/rooms/cinema/places", "", header...); a.text("placeId") == id {
			t.Errorf("%s: joined as the victim", name)
		}
	}
	if a := e.api(t).send("GET", "/v1/rooms/cinema/place", "", bearer(victim)...); a.status != 200 || a.text("status") == "left" {
		t.Errorf("the victim's place: %s", a.body)
	}
}

func TestLeavingIsFinalAndRepeatable(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	f := e.browser(t)
	joined := f.join()
	if a := f.send("DELETE", "/v1/rooms/cinema/place", ""); a.status != 204 || f.cookie("usher_place_cinema") != "" {
		t.Errorf("left: %d, cookie %q", a.status, f.cookie("usher_place_cinema"))
	}
	if a := e.api(t).send("DELETE", "/v1/rooms/cinema/place", "", bearer(joined)...); a.status != 204 {
		t.Errorf("left again: %d", a.status)
	}
	if a := f.send("GET", "/v1/rooms/cinema/place", ""); a.slug() != "place-token-missing" {
		t.Errorf("after leaving: %s", a.body)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		a := e.api(t).send("GET", "/v1/rooms/cinema/place", "", bearer(joined)...)
		if a.text("status") == "left" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the former token: %s", a.body)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if a := e.api(t).send("POST", "/v1/rooms/cinema/pass", "", bearer(joined)...); a.slug() != "place-expired" || a.status != 409 {
		t.Errorf("a pass for a place that was left: %s", a.body)
	}
}

func TestPausedAndClosedSaySo(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 60_000, 10)
	f := e.browser(t)
	f.join()
	deadline := time.Now().Add(5 * time.Second)
	for f.send("GET", "/v1/rooms/cinema/place", "").text("status") != "called" {
		if time.Now().After(deadline) {
			t.Fatal("never called")
		}
		time.Sleep(20 * time.Millisecond)
	}
	called := f.send("GET", "/v1/rooms/cinema/place", "")
	until, err := time.Parse(time.RFC3339, called.text("calledUntil"))
	if err != nil || time.Until(until) < time.Minute || called.num("position") != 0 {
		t.Errorf("called: %s", called.body)
	}
	e.settings(t, "cinema", 2, 60_000, 10, "paused")
	if a := f.send("POST", "/v1/rooms/cinema/pass", ""); a.slug() != "room-paused" || a.status != 409 || a.header.Get("Retry-After") == "" {
		t.Errorf("paused: %d %s", a.status, a.body)
	}
	if a := e.api(t).send("POST", "/v1/rooms/cinema/places", ""); a.status != 201 {
		t.Errorf("joining a paused room: %s", a.body)
	}
	e.settings(t, "cinema", 3, 60_000, 10, "closed")
	if a := e.api(t).send("POST", "/v1/rooms/cinema/places", ""); a.slug() != "room-closed" || a.status != 409 {
		t.Errorf("joining a closed room: %s", a.body)
	}
	if a := f.send("GET", "/v1/rooms/cinema/place", ""); a.status != 200 {
		t.Errorf("a place of a closed room: %s", a.body)
	}
	e.settings(t, "cinema", 4, 0, 10, "open")
	if a := f.send("POST", "/v1/rooms/cinema/pass", ""); a.slug() != "stand-by" || a.header.Get("Retry-After") == "" {
		t.Errorf("stand-by: %s", a.body)
	}
	e.settings(t, "cinema", 5, 60_000, 10, "open")
	f.pass()
	if err := e.line.PutSettings(t.Context(), queue.Settings{Room: "cinema", Title: "Cinema", Mode: "fifo", State: "open", Run: 2, Version: 6}); err != nil {
		t.Fatal(err)
	}
	if a := f.send("GET", "/v1/rooms/cinema/place", ""); a.slug() != "place-from-earlier-run" || a.status != 409 {
		t.Errorf("a place of before the reset: %s", a.body)
	}
}

func TestBadInputIsRefusedByName(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	e.settings(t, "stadium", 1, 0, 10, "open")
	api := e.api(t)
	good := api.join()
	token := good.text("token")
	other := api.send("POST", "/v1/rooms/stadium/places", "").text("token")
	place, places, passes := "/v1/rooms/cinema/place", "/v1/rooms/cinema/places", "/v1/rooms/cinema/pass"
	json := []string{"Content-Type", "application/json"}
	auth := func(s string) []string { return []string{"Authorization", "Bearer " + s} }
	last := token[len(token)-5:]
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		slug               string
	}{
		"no token":              {"GET", place, "", nil, 401, "place-token-missing"},
		"no token for a pass":   {"POST", passes, "", nil, 401, "place-token-missing"},
		"no token to leave":     {"DELETE", place, "", nil, 401, "place-token-missing"},
		"forged":                {"GET", place, "", auth(strings.Repeat("A", len(token))), 401, "place-token-invalid"},
		"edited":                {"GET", place, "", auth("B" + token[1:]), 401, "place-token-invalid"},
		"cut":                   {"GET", place, "", auth(token[:len(token)-5]), 401, "place-token-invalid"},
		"turned":                {"GET", place, "", auth(last + token[:len(token)-5]), 401, "place-token-invalid"},
		"another room's":        {"GET", place, "", auth(other), 401, "place-token-invalid"},
		"another room's pass":   {"POST", passes, "", auth(other), 401, "place-token-invalid"},
		"dots":                  {"GET", place, "", auth(strings.Repeat(".", 12_000)), 401, "place-token-invalid"},
		"too many dots":         {"GET", place, "", auth(strings.Repeat(".", 32_000)), 431, "headers-too-large"},
		"broken token at join":  {"POST", places, "", auth("x"), 401, "place-token-invalid"},
		"Basic":                 {"GET", place, "", []string{"Authorization", "Basic eDp5"}, 401, "place-token-missing"},
		"broken cookie":         {"GET", place, "", []string{"Cookie", "usher_place_cinema=%%%"}, 401, "place-token-missing"},
		"unknown room":          {"GET", "/v1/rooms/nowhere", "", nil, 404, "unknown-room"},
		"place in unknown room": {"GET", "/v1/rooms/nowhere/place", "", auth(token), 404, "unknown-room"},
		"join of unknown room":  {"POST", "/v1/rooms/nowhere/places", "", nil, 404, "unknown-room"},
		"no name of a room":     {"GET", "/v1/rooms/%7Bx%7D", "", nil, 404, "unknown-room"},
		"array":                 {"POST", places, "[]", json, 400, "invalid-body"},
		"not JSON":              {"POST", places, "{", json, 400, "invalid-body"},
		"two documents":         {"POST", places, "{}{}", json, 400, "invalid-body"},
		"unknown field":         {"POST", places, `{"vip":true}`, json, 400, "unknown-field"},
		"unknown field, pass":   {"POST", passes, `{"vip":true}`, append(json, auth(token)...), 400, "unknown-field"},
		"no content type":       {"POST", places, "{}", nil, 415, "unsupported-media-type"},
		"gzip":                  {"POST", places, "\x1f\x8b\x08", append([]string{"Content-Encoding", "gzip"}, json...), 415, "unsupported-media-type"},
		"key too long":          {"POST", places, "", []string{"Idempotency-Key", strings.Repeat("k", 129)}, 400, "idempotency-key-invalid"},
		"key with a space":      {"POST", places, "", []string{"Idempotency-Key", "a b"}, 400, "idempotency-key-invalid"},
		"not called":            {"POST", passes, "", auth(token), 409, "not-called-yet"},
	} {
		if a := api.send(c.method, c.path, c.body, c.header...); a.status != c.status || a.slug() != c.slug {
			t.Errorf("%s: got %d %s, want %d %s", name, a.status, a.body, c.status, c.slug)
		}
	}
	if v, err := e.line.Status(t.Context(), "cinema", queue.Token(token), 0); err != nil || v.Position != 1 {
		t.Errorf("the place after all that: %+v, %v", v, err)
	}
}

func TestFiftyBrokenCookiesAndABrowserThatCannotHelpIt(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	cookies := []string{"usher_fan=short", "usher_place_cinema=garbage", `quoted="a;b"`, "=", "noequals"}
	for i := range 50 {
		cookies = append(cookies, fmt.Sprintf("usher_place_room-%d=%s", i, strings.Repeat("ü", 40)))
	}
	a := e.api(t).join("Cookie", strings.Join(cookies, "; "))
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	fans := 0
	for _, c := range a.header.Values("Set-Cookie") {
		if strings.HasPrefix(c, "usher_fan=") || strings.HasPrefix(c, "usher_place_cinema=") {
			fans++
			if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") || !strings.Contains(strings.ToLower(c), "path=/") {
				t.Errorf("cookie %s", c)
			}
		}
	}
	if fans != 2 {
		t.Errorf("cookies set: %v", a.header.Values("Set-Cookie"))
	}
	// Broken cookies beside a good Bearer change nothing.
	b := e.api(t).send("GET", "/v1/rooms/cinema/place", "", append(bearer(a), "Cookie", strings.Join(cookies, "; "))...)
	if b.status != 200 || b.text("placeId") != a.text("placeId") {
		t.Errorf("%d %s", b.status, b.body)
	}
}

func TestPollsLeaveNoLineInTheLog(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 10)
	f := e.browser(t)
	f.join()
	for range 10 {
		f.send("GET", "/v1/rooms/cinema/place", "")
		f.send("GET", "/v1/rooms/cinema", "")
	}
	if n := strings.Count(e.logs.String(), "msg=request"); n != 1 {
		t.Errorf("%d lines for one join and 20 polls:\n%s", n, e.logs.String())
	}
}
