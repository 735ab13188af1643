package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"usher/queue"
)

// aDraw is a draw as an edge publishes it, from its own memory; its fields can be
// falsified before it is served.
type aDraw struct {
	doc  map[string]any
	list string
	part int // lines of an answer
}

func drawOf(fans int) *aDraw {
	seed := sha256.Sum256([]byte("seed"))
	var entries []byte
	for i := range fans {
		m := sha256.Sum256([]byte(strconv.Itoa(i)))
		entries = append(entries, m[:16]...)
	}
	digest := queue.EntriesDigest(entries)
	var list strings.Builder
	_ = queue.WriteEntries(&list, entries)
	return &aDraw{list: list.String(), part: 300, doc: map[string]any{
		"room": "arena", "algorithm": queue.DrawAlgorithm, "run": 2, "publicValue": "7 21 35",
		"commitment": queue.DrawCommitment("arena", 2, seed[:]), "seed": hex.EncodeToString(seed[:]), "entries": fans,
		"entriesDigest": hex.EncodeToString(digest[:]), "orderKey": hex.EncodeToString(queue.DrawKey(seed[:], digest, "7 21 35")),
		"drawnAt": "2026-12-01T10:00:03.000Z",
	}}
}

func (d *aDraw) text(key string) string { s, _ := d.doc[key].(string); return s }

func (d *aDraw) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/rooms/arena/draw", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(d.doc)
	})
	var asked atomic.Int64
	mux.HandleFunc("GET /v1/rooms/arena/draw/entries", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 { // others of this address check too
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		lines := strings.SplitAfter(strings.TrimSuffix(d.list, "\n"), "\n")
		from, _ := strconv.Atoi(r.FormValue("from"))
		to := min(from+d.part, len(lines))
		if to < len(lines) {
			w.Header().Set("Usher-Next", strconv.Itoa(to))
		}
		_, _ = fmt.Fprint(w, strings.Join(lines[from:to], ""))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func verifyBy(args ...string) (code int, out string) {
	var b bytes.Buffer
	code = run(args, &b, &b)
	return code, b.String()
}

// One byte that was altered anywhere in what is published does not pass.
func TestQ18_VerifyDraw(t *testing.T) {
	t.Parallel()
	const fans = 1000
	d := drawOf(fans)
	url := d.serve(t)
	code, out := verifyBy("room", "verify-draw", url+"/rooms/arena")
	if code != 0 || strings.Count(out, " ok ") != 4 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, out := verifyBy("room", "verify-draw", "--edge", url, "arena"); code != 0 {
		t.Errorf("by id: exit %d: %s", code, out)
	}
	place := d.list[33*17:][:32]
	code, out = verifyBy("room", "verify-draw", url+"/rooms/arena/draw", "--place", place)
	_, after, _ := strings.Cut(out, "number ")
	shown, _, _ := strings.Cut(after, " of 1000")
	rank, err := strconv.Atoi(shown)
	if code != 0 || err != nil || rank < 1 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, out := verifyBy("room", "verify-draw", url+"/rooms/arena", "--place", place, "--rank", strconv.Itoa(rank)); code != 0 {
		t.Errorf("the right rank: exit %d: %s", code, out)
	}
	if code, out := verifyBy("room", "verify-draw", url+"/rooms/arena", "--place", place, "--rank", strconv.Itoa(rank%fans+1)); code == 0 {
		t.Errorf("a wrong rank passes: %s", out)
	}
	for _, wrong := range []string{"zz", strings.Repeat("0", 32)} {
		if code, out := verifyBy("room", "verify-draw", url+"/rooms/arena", "--place", wrong); code == 0 {
			t.Errorf("place %s: %s", wrong, out)
		}
	}

	flip := func(s string) string { // another digit, the same length
		if s[0] == '1' {
			return "2" + s[1:]
		}
		return "1" + s[1:]
	}
	for name, falsify := range map[string]func(d *aDraw){
		"seed":          func(d *aDraw) { d.doc["seed"] = flip(d.text("seed")) },
		"commitment":    func(d *aDraw) { d.doc["commitment"] = flip(d.text("commitment")) },
		"run":           func(d *aDraw) { d.doc["run"] = 3 },
		"room":          func(d *aDraw) { d.doc["room"] = "arenb" },
		"public value":  func(d *aDraw) { d.doc["publicValue"] = "7 21 36" },
		"digest":        func(d *aDraw) { d.doc["entriesDigest"] = flip(d.text("entriesDigest")) },
		"order key":     func(d *aDraw) { d.doc["orderKey"] = flip(d.text("orderKey")) },
		"an entry":      func(d *aDraw) { d.list = d.list[:33*500] + flip(d.list[33*500:]) },
		"two exchanged": func(d *aDraw) { d.list = d.list[33:66] + d.list[:33] + d.list[66:] },
		"one missing":   func(d *aDraw) { d.list = d.list[33:] },
		"upper case":    func(d *aDraw) { d.list = strings.ToUpper(d.list[:33]) + d.list[33:] },
		"algorithm":     func(d *aDraw) { d.doc["algorithm"] = "usher-draw-2" },
		"not drawn":     func(d *aDraw) { d.doc["seed"] = nil },
		"no end":        func(d *aDraw) { d.part = 0 },
	} {
		d := drawOf(fans)
		falsify(d)
		if code, out := verifyBy("room", "verify-draw", d.serve(t)+"/rooms/arena"); code != 1 {
			t.Errorf("%s was altered: exit %d: %s", name, code, out)
		}
	}
	for _, bad := range []string{"http://", "/rooms/arena", url + "/cinema"} {
		if code, out := verifyBy("room", "verify-draw", bad); code == 0 {
			t.Errorf("%s: %s", bad, out)
		}
	}
}
