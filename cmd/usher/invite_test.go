package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A link of the operator's puts its fans before a line that stands, as many as it says.
func TestInvitesOverTheAdminAPI(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	env := []string{"USHER_OPERATOR_TOKEN=" + operatorToken}
	admin := "--admin=" + c.admins[1]
	mustUsher(t, env, "room", admin, "rate", "0", "cinema") // everybody waits
	places := func(edge int) string { return c.edges[edge] + "/v1/rooms/cinema/places" }
	for i := range 3 {
		call(t, 201, "POST", places(0), "", "", "Idempotency-Key", fmt.Sprint("fan-", i))
	}
	out := mustUsher(t, env, "room", admin, "invite", "cinema", "--quota=2", "--expires=1h")
	url, _, _ := strings.Cut(out, "\n")
	before, token, ok := strings.Cut(url, "#invite=")
	if !ok || before != c.edges[0]+"/rooms/cinema/invite" {
		t.Fatalf("the link is %q", url)
	}
	body := `{"invite":"` + token + `"}`
	for i := range 2 {
		r := call(t, 201, "POST", places(i), "", body, "Idempotency-Key", fmt.Sprint("vip-", i))
		if got := r.doc["position"]; got != float64(i+1) || r.text("line") != "invited" {
			t.Errorf("vip %d: %s", i, r.body)
		}
		call(t, 200, "POST", places(1-i), "", body, "Idempotency-Key", fmt.Sprint("vip-", i))
	}
	for want, join := range map[string]reply{
		"invite-used-up": call(t, 409, "POST", places(0), "", body, "Idempotency-Key", "vip-3"),
		"invite-invalid": call(t, 403, "POST", places(0), "", `{"invite":"`+token[:50]+`"}`, "Idempotency-Key", "vip-3"),
	} {
		if !strings.Contains(join.body, want) {
			t.Errorf("%s", join.body)
		}
	}
	call(t, 403, "POST", c.edges[0]+"/v1/rooms/last-seats/places", "", body, "Idempotency-Key", "vip-0")
	short := call(t, 201, "POST", c.admins[0]+"/v1/admin/rooms/cinema/invites", operatorToken, `{"quota":1,"expiresInSeconds":1}`)
	eventually(t, 20*time.Second, "the short one has expired", func() bool {
		r, err := send(t.Context(), "POST", places(0), "", `{"invite":"`+short.text("invite")+`"}`, "Idempotency-Key", "fan-0")
		return err == nil && r.status == 410 && strings.Contains(r.body, "invite-expired")
	})
	if list := mustUsher(t, env, "room", admin, "invites", "cinema"); strings.Count(list, "tester") != 2 || strings.Contains(list, token) {
		t.Errorf("the list says %q", list)
	}
	for _, bad := range []string{`{"quota":0,"expiresInSeconds":60}`, `{"quota":10001,"expiresInSeconds":60}`, `{"quota":1}`, `{"quota":1,"expiresInSeconds":99999999999}`, `{"kind":"gold","quota":1,"expiresInSeconds":60}`} {
		call(t, 422, "POST", c.admins[0]+"/v1/admin/rooms/cinema/invites", operatorToken, bad)
	}
	call(t, 404, "POST", c.admins[0]+"/v1/admin/rooms/nowhere/invites", operatorToken, `{"quota":1,"expiresInSeconds":60}`)
	call(t, 401, "POST", c.admins[0]+"/v1/admin/rooms/cinema/invites", "", `{"quota":1,"expiresInSeconds":60}`)
}
