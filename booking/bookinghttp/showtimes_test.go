package bookinghttp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"testing"

	"usher/booking/bookingtest"
)

type mapDoc struct {
	ShowtimeID, LayoutVersion, Currency string
	Seats                               []struct{ Code, Section, Row, Number, PriceClass, Status string }
}

func (m mapDoc) status(code string) string {
	for _, s := range m.Seats {
		if s.Code == code {
			return s.Status
		}
	}
	return ""
}

func readMap(t *testing.T, body []byte) (m mapDoc) {
	t.Helper()
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	return m
}

func TestShowtimesAreListed(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{Limit: 6})
	r := h.do("GET", "/v1/showtimes?room=room", nil)
	r.want(200, "")
	list, _ := r.doc()["showtimes"].([]any)
	if len(list) != 1 {
		t.Fatalf("got %s", r.body)
	}
	first, _ := list[0].(map[string]any)
	if first["showtimeId"] != "show" || first["room"] != "room" || first["currency"] != "EUR" || first["id"] != "show" {
		t.Errorf("got %v", first)
	}
	h.do("GET", "/v1/showtimes?room=nowhere", nil).want(404, "unknown-room")
	h.do("GET", "/v1/showtimes/show", nil).want(200, "")
	h.do("GET", "/v1/showtimes/nothing", nil).want(404, "unknown-showtime")
	h.do("GET", "/v1/showtimes/nothing/seats", nil).want(404, "unknown-showtime")
}

func TestTheMapIsCachedByContentAndShowsAHoldAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	before := h.do("GET", "/v1/showtimes/show/seats", nil)
	before.want(200, "")
	tag := before.header.Get("ETag")
	if m := readMap(t, before.body); len(m.Seats) != 200 || m.status("B2") != "AVAILABLE" || m.Currency != "EUR" {
		t.Errorf("got %.300s", before.body)
	}
	if before.header.Get("Cache-Control") != "public, max-age=1" || tag == "" {
		t.Errorf("headers %v", before.header)
	}
	for _, known := range []string{tag, `"x", W/` + tag, "*"} {
		if same := h.do("GET", "/v1/showtimes/show/seats", nil, "If-None-Match", known); same.status != 304 || len(same.body) != 0 {
			t.Errorf("If-None-Match %s: %d", known, same.status)
		}
	}
	h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": []string{"B2"}}, bearer(h.session("ann"))...).want(201, "")
	after := h.do("GET", "/v1/showtimes/show/seats", nil, "If-None-Match", tag)
	if after.status != 200 || readMap(t, after.body).status("B2") != "HELD" || after.header.Get("ETag") == tag {
		t.Errorf("after a hold: %d %v", after.status, after.header)
	}
	zipped := h.do("GET", "/v1/showtimes/show/seats", nil, "Accept-Encoding", "br, gzip;q=0.5")
	if zipped.header.Get("Content-Encoding") != "gzip" || zipped.header.Get("ETag") == after.header.Get("ETag") {
		t.Fatalf("headers %v", zipped.header)
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped.body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(plain, after.body) {
		t.Errorf("the compressed map is another one: %v", err)
	}
	if r := h.do("GET", "/v1/showtimes/show/seats", nil, "Accept-Encoding", "gzip;q=0"); r.header.Get("Content-Encoding") != "" {
		t.Error("gzip was refused and sent")
	}
}
