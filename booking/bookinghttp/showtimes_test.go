package bookinghttp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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

// Two rooms with names of one length, asked for over one connection: its buffer is
// where both names lie, one after the other.
func TestTwoRoomsOnOneConnection(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	bookingtest.Seed(t, h.pool, bookingtest.Hall{Room: "hall", Event: "other", Showtime: "play"})
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	get := func(path string) (int, string) {
		res, err := client.Get(h.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	shows := map[string]string{"room": "show", "hall": "play"}
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); { // longer than a list is kept
		for room, show := range shows {
			for path, want := range map[string]string{
				"/book/" + room: `"id":"` + show + `"`, "/v1/showtimes?room=" + room: `"id":"` + show + `"`, "/enter?room=" + room: "/rooms/" + room,
			} {
				if status, body := get(path); status != 200 || !strings.Contains(body, want) {
					t.Fatalf("GET %s: %d without %s", path, status, want)
				}
			}
		}
		if status, _ := get("/v1/showtimes?room=owtimes"); status != 404 {
			t.Fatalf("no such room: %d", status)
		}
	}
}

func TestIdsThatCanBeNobodysAreUnknown(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	me := bearer(h.session("ann"))
	for _, id := range []string{"%00", "%ff", "Room"} {
		h.do("GET", "/v1/showtimes?room="+id, nil).want(404, "unknown-room")
		h.do("GET", "/v1/showtimes/"+id, nil).want(404, "unknown-showtime")
		h.do("GET", "/v1/showtimes/"+id+"/seats", nil).want(404, "unknown-showtime")
		h.do("POST", "/v1/showtimes/"+id+"/holds", map[string]any{"seats": []string{"A1"}}, me...).want(404, "unknown-showtime")
		h.do("GET", "/v1/holds/"+id, nil, me...).want(404, "unknown-hold")
		for _, page := range []string{"/enter?room=" + id, "/book/" + id, "/book/room?showtime=" + id, "/bookings/" + id} {
			if r := h.do("GET", page, nil); r.status != 404 {
				t.Errorf("GET %s: %d", page, r.status)
			}
		}
	}
	h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": []string{"\x00"}}, me...).want(400, "unknown-seat")
	h.do("GET", "/v1/holds/urn:uuid:0192f0c1-2222-7333-8444-0123456789ab", nil, me...).want(404, "unknown-hold")
}

func TestAFanIsToldOfTheirOwnSeats(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	me := bearer(h.session("ann"))
	take := func(seats ...string) reply {
		return h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": seats}, me...)
	}
	first := take("H1")
	r := take("H1", "H2")
	r.want(409, "seats-unavailable")
	if !strings.Contains(string(r.body), `"seats":[]`) || !strings.Contains(string(r.body), `"yours":["H1"]`) ||
		r.text("holdId") != first.text("holdId") || !strings.Contains(r.text("title"), "already hold") {
		t.Errorf("got %s", r.body)
	}
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
