package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const arena = `rooms:
  - id: arena
    title: Arena
    mode: draw
    ratePerMinute: 0
    cap: 5
    timezone: Europe/Lisbon
    gathersAt: 2026-01-01 20:00
    opensAt: 2099-01-01 20:00
`

// number is a number of the document; -1 without it.
func number(r reply, key string) int {
	if n, ok := r.doc[key].(float64); ok {
		return int(n)
	}
	return -1
}

// A draw from its file to its check: the schedule gathers and draws, the bridge
// opens, everybody's number is the one that the published list gives, and a Redis
// that forgot everything gets the list back.
func TestQ18_ADrawFromTheFileToItsCheck(t *testing.T) {
	t.Parallel()
	_, at := startDev(t, nil)
	file := filepath.Join(t.TempDir(), "arena.yaml")
	if err := os.WriteFile(file, []byte(arena), 0o600); err != nil {
		t.Fatal(err)
	}
	mustUsher(t, nil, "event", "apply", "-f", file, "--postgres-url", at.PostgresURL)
	edge, admin := at.Edge+"/v1/rooms/arena", at.Admin+"/v1/admin/rooms/arena"
	eventually(t, 20*time.Second, "the gathering, whose time is past", func() bool {
		r, err := send(t.Context(), "GET", edge, "", "")
		return err == nil && r.text("state") == "gathering"
	})
	env := []string{"USHER_ADMIN_URL=" + at.Admin, "USHER_OPERATOR_TOKEN=" + at.OperatorToken}
	for _, refused := range []struct{ verb, want string }{
		{"open", "opens by itself after the drawing"}, {"resume", "cannot become open"}, {"pause", "cannot become paused"},
	} {
		if out, code := usher(t, env, "room", refused.verb, "arena"); code == 0 || !strings.Contains(out, refused.want) {
			t.Errorf("%s while it gathers: %d %s", refused.verb, code, out)
		}
	}
	tokens := map[string]string{}
	join := func(key string) string {
		t.Helper()
		r := call(t, 201, "POST", edge+"/places", "", "", "Idempotency-Key", key)
		if r.text("status") != "waiting" || number(r, "position") < 0 {
			t.Errorf("%s: %s", key, r.body)
		}
		tokens[r.text("placeId")] = r.text("token")
		return r.text("placeId")
	}
	const fans = 15
	for i := range fans {
		join(fmt.Sprint("fan-", i))
	}
	before := call(t, 200, "GET", edge+"/draw", "", "")
	if before.doc["seed"] != nil || before.text("commitment") == "" {
		t.Errorf("before the draw: %s", before.body)
	}
	if out, code := usher(t, nil, "room", "verify-draw", at.Edge+"/rooms/arena"); code == 0 || !strings.Contains(out, "not been drawn") {
		t.Errorf("checked before it was drawn: %d %s", code, out)
	}
	call(t, 200, "PATCH", admin, at.OperatorToken, `{"publicValue":"4 8 15 16 23 42"}`)
	call(t, 422, "PATCH", admin, at.OperatorToken, `{"publicValue":"a\nb"}`)
	for _, bad := range []string{`{"opensAt":"2025-12-31 20:00"}`, `{"gathersAt":"2027-03-28 01:30"}`, `{"opensAt":"soon"}`} {
		if r := call(t, 422, "PATCH", admin, at.OperatorToken, bad); !strings.Contains(r.body, "schedule-invalid") {
			t.Errorf("%s: %s", bad, r.body)
		}
	}
	doc := call(t, 200, "PATCH", admin, at.OperatorToken, `{"opensAt":"`+time.Now().Add(time.Second).Format(time.RFC3339Nano)+`"}`)
	if strings.Contains(doc.body, "eed") || doc.text("timezone") != "Europe/Lisbon" {
		t.Errorf("what the operator is told: %s", doc.body)
	}
	eventually(t, 30*time.Second, "the opening, by the drawing", func() bool {
		r, err := send(t.Context(), "GET", edge, "", "")
		return err == nil && r.text("state") == "open" && strings.Contains(r.body, `"drawnAt":"20`)
	})
	call(t, 422, "PATCH", admin, at.OperatorToken, `{"publicValue":"1"}`)
	call(t, 409, "POST", admin+"/draw", at.OperatorToken, "")
	late := join("late")

	check := func() {
		t.Helper()
		seen := map[int]bool{}
		for place, token := range tokens {
			position := number(call(t, 200, "GET", edge+"/place", token, ""), "position")
			if seen[position] || position < 1 || position > fans+1 || (place == late) != (position == fans+1) {
				t.Errorf("place %s is told %d", place, position)
			}
			seen[position] = true
			if place == late {
				continue
			}
			out, code := usher(t, nil, "room", "verify-draw", at.Edge+"/rooms/arena", "--place", place, "--rank", fmt.Sprint(position))
			if code != 0 || !strings.Contains(out, fmt.Sprintf("number %d of %d", position, fans)) {
				t.Errorf("place %s is told %d: %d %s", place, position, code, out)
			}
		}
	}
	eventually(t, 20*time.Second, "the late one on the board", func() bool {
		r, err := send(t.Context(), "GET", edge, "", "")
		return err == nil && number(r, "waiting") == fans+1
	})
	check()
	after := call(t, 200, "GET", edge+"/draw", "", "")
	if after.text("commitment") != before.text("commitment") || after.text("publicValue") != "4 8 15 16 23 42" {
		t.Errorf("announced %s, drawn %s", before.body, after.body)
	}

	o, err := redis.ParseURL(at.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	defer func() { _ = rdb.Close() }()
	if err := rdb.Del(context.WithoutCancel(t.Context()), "usher:{arena}:entries").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the list, put back", func() bool {
		_, code := usher(t, nil, "room", "verify-draw", at.Edge+"/rooms/arena")
		return code == 0
	})
	check()
	if out := mustUsher(t, nil, "audit", "--postgres-url", at.PostgresURL); !strings.Contains(out, "holds") {
		t.Errorf("audit: %s", out)
	}
}
