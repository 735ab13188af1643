package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// An operator gives the priority line its share and makes a link into it; the edges
// call by it, and bad numbers change nothing.
func TestThePriorityLineOverTheAdminAPI(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	env := []string{"USHER_OPERATOR_TOKEN=" + operatorToken}
	admin := "--admin=" + c.admins[1]
	room := c.admins[0] + "/v1/admin/rooms/cinema"
	mustUsher(t, env, "room", admin, "cap", "0", "cinema") // everybody waits
	if r := call(t, 200, "GET", room, operatorToken, ""); r.doc["priorityShare"] != 30.0 {
		t.Errorf("%s", r.body)
	}
	mustUsher(t, env, "room", admin, "priority-share", "50", "cinema")
	version := call(t, 200, "GET", room, operatorToken, "").doc["version"]
	for bad, status := range map[string]int{"-1": 422, "101": 422, `"x"`: 400, "30.5": 400, "1e30": 400} {
		r := call(t, status, "PATCH", room, operatorToken, `{"cap":7,"priorityShare":`+bad+`}`)
		if !strings.Contains(r.body, "priorityShare") || !strings.Contains(r.header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("%s: %s", bad, r.body)
		}
	}
	for _, bad := range []string{"x", "101"} {
		if out, code := usher(t, env, "room", admin, "priority-share", bad, "cinema"); code == 0 {
			t.Errorf("a share of %s: %s", bad, out)
		}
	}
	if r := call(t, 200, "GET", room, operatorToken, ""); r.doc["priorityShare"] != 50.0 || r.doc["cap"] != 0.0 || r.doc["version"] != version {
		t.Errorf("a refused change changed something: %s", r.body)
	}

	out := mustUsher(t, env, "room", admin, "invite", "cinema", "--kind=priority", "--quota=2")
	if !strings.Contains(out, "2 places in the priority line of cinema") {
		t.Errorf("%s", out)
	}
	_, token, _ := strings.Cut(strings.SplitN(out, "\n", 2)[0], "#invite=")
	if list := mustUsher(t, env, "room", admin, "invites", "cinema"); !strings.Contains(list, "(priority)") {
		t.Errorf("%s", list)
	}
	places := func(edge int) string { return c.edges[edge] + "/v1/rooms/cinema/places" }
	place := func(edge int) string { return c.edges[edge] + "/v1/rooms/cinema/place" }
	var plain, prior []string
	for i := range 2 {
		r := call(t, 201, "POST", places(i), "", "", "Idempotency-Key", fmt.Sprint("fan-", i))
		plain = append(plain, r.text("token"))
		r = call(t, 201, "POST", places(i), "", `{"invite":"`+token+`"}`, "Idempotency-Key", fmt.Sprint("vip-", i))
		if r.text("line") != "priority" || r.doc["position"] != float64(i+1) {
			t.Errorf("vip %d: %s", i, r.body)
		}
		prior = append(prior, r.text("token"))
	}
	call(t, 409, "POST", places(0), "", `{"invite":"`+token+`"}`, "Idempotency-Key", "vip-2")
	if status := mustUsher(t, env, "room", admin, "status", "cinema"); !strings.Contains(status, "4 waiting (2 in the priority line, with 50 % of the calls)") {
		t.Errorf("%s", status)
	}
	mustUsher(t, env, "room", admin, "cap", "2", "cinema")
	for _, token := range []string{plain[0], prior[0]} {
		eventually(t, 20*time.Second, "one of each line is called", func() bool {
			r, err := send(t.Context(), "GET", place(1), token, "")
			return err == nil && r.text("status") == "called"
		})
	}
	for _, token := range []string{plain[1], prior[1]} {
		if r := call(t, 200, "GET", place(0), token, ""); r.text("status") != "waiting" || r.doc["position"] == 0.0 {
			t.Errorf("%s", r.body)
		}
	}
}
