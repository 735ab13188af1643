package bookinghttp

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"usher/booking/bookingtest"
)

func TestAHoldOverHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	ann, bob := h.session("ann"), h.session("bob")
	seats := map[string]any{"seats": []string{"B2", "B10"}}
	first := h.do("POST", "/v1/showtimes/show/holds", seats, bearer(ann)...)
	first.want(201, "")
	id := first.text("holdId")
	if d := first.doc(); d["amount"] != float64(2*bookingtest.Price) || d["currency"] != "EUR" || d["showtimeId"] != "show" ||
		first.header.Get("Location") != "/v1/holds/"+id {
		t.Errorf("got %s", first.body)
	}
	again := h.do("POST", "/v1/showtimes/show/holds", seats, bearer(ann)...)
	again.want(200, "")
	if again.text("holdId") != id || again.text("expiresAt") != first.text("expiresAt") {
		t.Errorf("again: %s", again.body)
	}
	lost := h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": []string{"B1", "B2"}}, bearer(bob)...)
	lost.want(409, "seats-unavailable")
	if !strings.Contains(string(lost.body), `"seats":["B2"]`) {
		t.Errorf("lost: %s", lost.body)
	}
	h.do("GET", "/v1/holds/"+id, nil, bearer(ann)...).want(200, "")
	h.do("GET", "/v1/holds/"+id, nil, bearer(bob)...).want(404, "unknown-hold")
	h.do("DELETE", "/v1/holds/"+id, nil, bearer(bob)...).want(404, "unknown-hold")
	h.do("DELETE", "/v1/holds/"+id, nil, bearer(ann)...).want(204, "")
	h.do("POST", "/v1/showtimes/show/holds", seats, bearer(bob)...).want(201, "")
}

func TestBestOverHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	ann := h.session("ann")
	best := map[string]any{"best": map[string]any{"count": 3, "section": "MAIN"}}
	h.do("POST", "/v1/showtimes/show/holds", best, bearer(ann)...).want(400, "idempotency-key-missing")
	keyed := append(bearer(ann), "Idempotency-Key", "k1")
	first := h.do("POST", "/v1/showtimes/show/holds", best, keyed...)
	first.want(201, "")
	again := h.do("POST", "/v1/showtimes/show/holds", best, keyed...)
	again.want(201, "")
	if first.text("holdId") != again.text("holdId") {
		t.Errorf("one key made two holds: %s, %s", first.body, again.body)
	}
	h.do("POST", "/v1/showtimes/show/holds", map[string]any{"best": map[string]any{"count": 2}}, keyed...).want(422, "idempotency-key-reused")
	// B12: four are asked for, three are left.
	left := bookingtest.Leave(t, h.pool, "show", 3)
	three := h.do("POST", "/v1/showtimes/show/holds", map[string]any{"best": map[string]any{"count": 4}}, append(bearer(ann), "Idempotency-Key", "k2")...)
	three.want(409, "none-free-now")
	if three.doc()["left"] != float64(len(left)) {
		t.Errorf("%s, %d are left", three.body, len(left))
	}
	bookingtest.Leave(t, h.pool, "show", 0)
	h.do("POST", "/v1/showtimes/show/holds", map[string]any{"best": map[string]any{"count": 4}}, append(bearer(ann), "Idempotency-Key", "k3")...).want(409, "sold-out")
}

func TestBadHoldRequestsEachHaveTheirProblemAndChangeNothing(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{})
	bookingtest.Seed(t, h.pool, bookingtest.Hall{Room: "other", Showtime: "elsewhere"})
	ann := bearer(h.session("ann"))
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write([]byte(`{"seats":["A1"]}`))
	_ = z.Close()
	const path = "/v1/showtimes/show/holds"
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		status     int
		problem    string
	}{
		"nothing":               {path, ``, ann, 400, "invalid-body"},
		"no JSON":               {path, `{"seats"`, ann, 400, "invalid-body"},
		"two documents":         {path, `{"seats":["A1"]}{}`, ann, 400, "invalid-body"},
		"wrong type":            {path, `{"seats":"A1"}`, ann, 400, "invalid-body"},
		"wrong element":         {path, `{"seats":[1]}`, ann, 400, "invalid-body"},
		"unknown field":         {path, `{"seats":["A1"],"price":1}`, ann, 400, "unknown-field"},
		"neither":               {path, `{}`, ann, 400, "seats-required"},
		"both":                  {path, `{"seats":["A1"],"best":{"count":1}}`, append(ann[:2:2], "Idempotency-Key", "k"), 400, "invalid-body"},
		"no seat":               {path, `{"seats":[]}`, ann, 400, "seats-required"},
		"nine seats":            {path, `{"seats":["A1","A2","A3","A4","A5","A6","A7","A8","A9"]}`, ann, 400, "too-many-seats"},
		"a seat twice":          {path, `{"seats":["A1","A1"]}`, ann, 400, "duplicate-seat"},
		"unknown seat":          {path, `{"seats":["A1","Z99"]}`, ann, 400, "unknown-seat"},
		"best of none":          {path, `{"best":{"count":0}}`, append(ann[:2:2], "Idempotency-Key", "k"), 400, "seats-required"},
		"best of nine":          {path, `{"best":{"count":9}}`, append(ann[:2:2], "Idempotency-Key", "k"), 400, "too-many-seats"},
		"best of no section":    {path, `{"best":{"count":1,"section":"X"}}`, append(ann[:2:2], "Idempotency-Key", "k"), 400, "unknown-seat"},
		"bad key":               {path, `{"seats":["A1"]}`, append(ann[:2:2], "Idempotency-Key", strings.Repeat("k", 129)), 400, "idempotency-key-invalid"},
		"unknown showtime":      {"/v1/showtimes/nowhere/holds", `{"seats":["A1"]}`, ann, 404, "unknown-showtime"},
		"another room's":        {"/v1/showtimes/elsewhere/holds", `{"seats":["A1"]}`, ann, 403, "wrong-room"},
		"no token":              {path, `{"seats":["A1"]}`, nil, 401, "session-missing"},
		"forged token":          {path, `{"seats":["A1"]}`, bearer("00000000-0000-7000-8000-000000000000.AAAA"), 401, "session-invalid"},
		"truncated token":       {path, `{"seats":["A1"]}`, bearer(ann[1][7 : len(ann[1])-2]), 401, "session-invalid"},
		"gzip":                  {path, bomb.String(), append(ann[:2:2], "Content-Encoding", "gzip"), 415, "unsupported-media-type"},
		"a form":                {path, `seats=A1`, append(ann[:2:2], "Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported-media-type"},
		"cookie of our session": {path, `{"seats":["A1"]}`, []string{"Cookie", SessionCookie + "=" + ann[1][7:]}, 403, "cross-site-request"},
		"cookie, other site": {
			path, `{"seats":["A1"]}`,
			[]string{"Cookie", SessionCookie + "=" + ann[1][7:], "Sec-Fetch-Site", "cross-site"}, 403, "cross-site-request",
		},
		"foreign origin": {path, `{"seats":["A1"]}`, append(ann[:2:2], "Origin", "https://evil.test"), 403, "origin-not-allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.do("POST", c.path, c.body, c.headers...)
			r.t = t
			r.want(c.status, c.problem)
		})
	}
	for _, id := range []string{"x", "00000000-0000-7000-8000-000000000000", "..%2f"} {
		h.do("GET", "/v1/holds/"+id, nil, ann...).want(404, "unknown-hold")
	}
	var n int
	if err := h.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM hold) + (SELECT count(*) FROM show_seat WHERE status <> 'AVAILABLE')`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows changed, %v", n, err)
	}
}

func TestAFanIsToldOfTheLimitAndTheMinute(t *testing.T) {
	t.Parallel()
	h := open(t, bookingtest.Hall{Limit: 6})
	ann := bearer(h.session("ann"))
	take := func(seats ...string) reply {
		return h.do("POST", "/v1/showtimes/show/holds", map[string]any{"seats": seats}, ann...)
	}
	held := take("A1", "A2", "A3", "A4")
	held.want(201, "")
	over := take("B1", "B2", "B3")
	over.want(409, "ticket-limit")
	if d := over.doc(); d["limit"] != 6.0 || d["held"] != 4.0 || d["bought"] != 0.0 || d["left"] != 2.0 {
		t.Errorf("got %s", over.body)
	}
	for range 4 { // the takes of the minute are used up; a refusal counts for nothing
		h.do("DELETE", "/v1/holds/"+held.text("holdId"), nil, ann...).want(204, "")
		held = take("C1")
		held.want(201, "")
	}
	h.do("DELETE", "/v1/holds/"+held.text("holdId"), nil, ann...).want(204, "")
	sixth := take("C2")
	sixth.want(429, "too-many-requests")
	if sixth.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
