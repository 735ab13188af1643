package queuehttp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"usher/queue"
)

// drawnRoom gathers fans, and knows what Postgres would.
type drawnRoom struct {
	queue.Settings
	line *queue.Line
	seed [32]byte
}

func gather(t *testing.T, line *queue.Line, room string) *drawnRoom {
	t.Helper()
	d := &drawnRoom{line: line, seed: sha256.Sum256([]byte(room)), Settings: queue.Settings{
		Room: room, Title: "Arena", Mode: "draw", State: "scheduled", RatePerMinute: 1, Cap: 1, Run: 3, Version: 1, Timezone: "Europe/Lisbon",
		GathersAt: time.Date(2030, 10, 26, 19, 0, 0, 0, time.UTC), OpensAt: time.Date(2030, 10, 27, 1, 30, 0, 0, time.UTC),
	}}
	d.Draw.Commitment = queue.DrawCommitment(room, 3, d.seed[:])
	d.Draw.PublicValue = "Årets tall: 7 & 21"
	d.ship(t)
	return d
}

func (d *drawnRoom) ship(t *testing.T) {
	t.Helper()
	d.Version++
	if err := d.line.PutSettings(t.Context(), d.Settings); err != nil {
		t.Fatal(err)
	}
}

// drawn draws, and opens the room.
func (d *drawnRoom) drawn(t *testing.T) queue.DrawResult {
	t.Helper()
	d.State, d.Draw.Seed = "drawing", d.seed[:]
	d.ship(t)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		res, err := d.line.Drawn(t.Context(), d.Room)
		if err == nil {
			d.State = "open"
			d.Draw.Digest, d.Draw.Entries, d.Draw.Cut, d.Draw.At = res.Digest, len(res.Entries)/16, res.Cut, time.Now()
			d.ship(t)
			return res
		}
		if time.Now().After(deadline) {
			t.Fatalf("never drawn: %v", err)
		}
	}
}

func (d *drawnRoom) crowd(t *testing.T, fans int) (last queue.View) {
	t.Helper()
	for i := range fans {
		v, err := d.line.Join(t.Context(), d.Room, queue.Fan{ID: fmt.Sprint("fan-", i)})
		if err != nil {
			t.Fatal(err)
		}
		last = v
	}
	return last
}

func fetch(t *testing.T, url string) (int, http.Header, string) {
	t.Helper()
	res, err := http.Get(url) //nolint:noctx // of this test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

func TestQ18_WhatIsPublishedOfADraw(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1)
	d := gather(t, e.line, "arena")
	base := e.base + "/v1/rooms/arena"
	secret := hex.EncodeToString(d.seed[:])

	status, _, body := fetch(t, base+"/draw")
	for _, want := range []string{
		`"commitment":"` + d.Draw.Commitment + `"`, `"publicValue":"Årets tall: 7 \u0026 21"`, `"run":3`, `"algorithm":"usher-draw-1"`, `"seed":null`,
		`"entries":null`, `"entriesDigest":null`, `"orderKey":null`, `"drawnAt":null`, `"entriesUrl":"/v1/rooms/arena/draw/entries"`,
	} {
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("before: %d, no %s in %s", status, want, body)
		}
	}
	if status, _, body := fetch(t, base+"/draw/entries"); status != 409 || !strings.Contains(body, "not-drawn-yet") {
		t.Errorf("the list before: %d %s", status, body)
	}
	if status, _, body := fetch(t, e.base+"/v1/rooms/cinema/draw"); status != 404 || !strings.Contains(body, "no-draw") {
		t.Errorf("a room that is not drawn: %d %s", status, body)
	}
	if status, _, body := fetch(t, e.base+"/v1/rooms/nowhere/draw"); status != 404 || !strings.Contains(body, "unknown-room") {
		t.Errorf("no room: %d %s", status, body)
	}
	_, err := e.line.Join(t.Context(), "arena", queue.Fan{ID: "too early"})
	if early := (*queue.NotOpenYetError)(nil); !errors.As(err, &early) || !early.OpensAt.Equal(d.GathersAt) {
		t.Errorf("joining before the gathering: %v", err)
	}
	d.State = "gathering"
	d.ship(t)
	d.crowd(t, 25)
	_, _, gathering := fetch(t, base)
	_, _, page := fetch(t, e.base+"/rooms/arena/draw")
	res := d.drawn(t)
	for name, text := range map[string]string{"JSON": gathering, "page": page} {
		if strings.Contains(text, secret) || !strings.Contains(text, d.Draw.Commitment) {
			t.Errorf("the %s of before the drawing: %s", name, text)
		}
	}

	_, _, body = fetch(t, base+"/draw")
	for _, want := range []string{`"seed":"` + secret + `"`, `"entries":25`, fmt.Sprintf(`"entriesDigest":"%x"`, res.Digest), `"drawnAt":"20`} {
		if !strings.Contains(body, want) {
			t.Errorf("after: no %s in %s", want, body)
		}
	}
	status, h, list := fetch(t, base+"/draw/entries")
	if sum := sha256.Sum256([]byte(list)); status != 200 || sum != res.Digest || h.Get("Usher-Next") != "" || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		t.Errorf("the list: %d %v %s", status, h, list)
	}
	if _, _, part := fetch(t, base+"/draw/entries?from=20"); part != strings.Join(strings.SplitAfter(list, "\n")[20:], "") {
		t.Errorf("from 20: %s", part)
	}
	if status, _, part := fetch(t, base+"/draw/entries?from=25"); status != 200 || part != "" {
		t.Errorf("beyond the end: %d %q", status, part)
	}
	for _, bad := range []string{"-1", "x", "1e3", "99999999999999999999"} {
		if status, _, _ := fetch(t, base+"/draw/entries?from="+bad); status != 400 {
			t.Errorf("from=%s: %d", bad, status)
		}
	}
	if status, _, page := fetch(t, e.base+"/rooms/arena/draw"); status != 200 || !strings.Contains(page, secret) || !strings.Contains(page, "sha256sum") {
		t.Errorf("the page: %d %s", status, page)
	}
	if status, _, _ := fetch(t, e.base+"/rooms/cinema/draw"); status != 404 {
		t.Errorf("the page of a room that is not drawn: %d", status)
	}
}

// The page works the draw out in the browser, under the policy it is served with.
func TestQ18_TheBrowserWorksTheDrawOut(t *testing.T) {
	t.Parallel()
	e := newEdge(t, 0, 1)
	d := gather(t, e.line, "arena")
	d.State = "gathering"
	d.ship(t)
	v := d.crowd(t, 2100) // more than one batch
	res := d.drawn(t)
	want := 0
	for i, r := range queue.NewDrawer(d.seed[:], res.Digest, d.Draw.PublicValue).Rank(res.Entries) {
		if hex.EncodeToString(r.Place[:]) == v.PlaceID {
			want = i + 1
		}
	}
	ctx := browser(t)
	complaints(t, ctx)
	do(t, ctx, chromedp.Navigate(e.base+"/rooms/arena/draw"))
	until(t, ctx, `document.getElementById("check") && !document.getElementById("check").hidden`)
	screenshot(t, ctx, "draw-before-check")
	check := func(place string) {
		t.Helper()
		js[bool](t, ctx, fmt.Sprintf(`(delete root.dataset.checked, $("place").value = %q, $("form").requestSubmit(), true)`, place))
		until(t, ctx, `root.dataset.checked`)
	}
	check(v.PlaceID)
	screenshot(t, ctx, "draw-checked")
	if got := js[string](t, ctx, `root.dataset.checked + " " + root.dataset.rank`); got != fmt.Sprint("ok ", want) {
		t.Errorf("the browser finds %q, rank %d is right: %s", got, want, js[string](t, ctx, `$("results").innerText`))
	}
	check(strings.Repeat("0", 32))
	if got := js[string](t, ctx, `$("results").innerText`); !strings.Contains(got, "took no part") {
		t.Errorf("a place that took no part: %s", got)
	}
	for _, falsify := range []string{
		`boot.seed = boot.seed.replace(/^./, c => c === "1" ? "2" : "1")`, `boot.publicValue += " "`,
		`boot.entriesDigest = boot.entriesDigest.replace(/^./, c => c === "1" ? "2" : "1")`, `boot.entries -= 1`,
	} {
		do(t, ctx, chromedp.Reload())
		until(t, ctx, `typeof boot === "object" && !$("check").hidden`)
		js[bool](t, ctx, `(`+falsify+`, true)`)
		check(v.PlaceID)
		if got := js[string](t, ctx, `root.dataset.checked`); got != "bad" {
			t.Errorf("%s passes: %s", falsify, js[string](t, ctx, `$("results").innerText`))
		}
	}
	for lang, words := range map[string]string{"pt-BR": "Um sorteio que você pode conferir", "es": "Un sorteo que puedes comprobar"} {
		if _, _, page := fetch(t, e.base+"/rooms/arena/draw?lang="+lang); !strings.Contains(page, words) {
			t.Errorf("no %q in %s", words, lang)
		}
	}
}
