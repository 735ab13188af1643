package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Revoked at one booking process, refused by the other within a second, and by the
// edges soon after (Q12).
func TestQ12_RevokedEverywhere(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	show := showtime(t, c.bookings[0], "cinema")
	bot := admit(t, c.edges[0], c.bookings[1], "cinema", "bot")
	fan := admit(t, c.edges[1], c.bookings[0], "cinema", "fan")
	place := call(t, 200, "GET", c.edges[0]+"/v1/rooms/cinema/place", bot.place, "").text("placeId")
	hold := call(t, 201, "POST", c.bookings[1]+"/v1/showtimes/"+show+"/holds", bot.session, `{"seats":["G7","G8"]}`).text("holdId")
	room := "--admin=" + c.admins[0]
	env := []string{"USHER_OPERATOR_TOKEN=" + operatorToken}

	file := filepath.Join(t.TempDir(), "bots.txt")
	if err := os.WriteFile(file, []byte("# found by their speed\nplace:"+place+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := mustUsher(t, env, "room", room, "revoke", "cinema", "--file="+file, "--reason=bots")
	if !strings.Contains(out, "1 places") {
		t.Errorf("revoke says %q", out)
	}
	// The statement looks for itself: no time at all is needed at the other process.
	if r := call(t, 403, "POST", c.bookings[1]+"/v1/showtimes/"+show+"/holds", bot.session, `{"seats":["A1"]}`); !strings.Contains(r.body, "/revoked") && !strings.Contains(r.body, `"revoked"`) {
		t.Errorf("%s", r.body)
	}
	begin := time.Now()
	eventually(t, 20*time.Second, "the session is refused", func() bool {
		r, err := send(t.Context(), "POST", c.bookings[1]+"/v1/holds/"+hold+"/checkout", bot.session, `{}`, "Idempotency-Key", "k")
		return err == nil && r.status == 403
	})
	if took := time.Since(begin); took > 2500*time.Millisecond { // one second, and a crowded machine
		t.Errorf("it took %s", took)
	}
	eventually(t, 20*time.Second, "another fan takes the bot's seats", func() bool {
		r, err := send(t.Context(), "POST", c.bookings[0]+"/v1/showtimes/"+show+"/holds", fan.session, `{"seats":["G7","G8"]}`)
		return err == nil && r.status == 201
	})
	for _, edge := range c.edges {
		eventually(t, 20*time.Second, "the place is refused at "+edge, func() bool {
			r, err := send(t.Context(), "GET", edge+"/v1/rooms/cinema/place", bot.place, "")
			return err == nil && r.status == 200 && r.text("status") == "expired" && strings.Contains(r.body, `"revoked":true`)
		})
		call(t, 403, "POST", edge+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", "bot")
	}

	// Lifted by its id, they line up again.
	list := mustUsher(t, env, "room", room, "revocations", "cinema")
	id, _, _ := strings.Cut(list, " ")
	mustUsher(t, env, "room", room, "lift", "cinema", id)
	eventually(t, 20*time.Second, "the bot is let in line again", func() bool {
		r, err := send(t.Context(), "POST", c.edges[0]+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", "bot")
		return err == nil && r.status/100 == 2
	})

	// Everybody: who was inside is out, and joins again.
	mustUsher(t, env, "room", room, "revoke", "cinema", "--everybody", "--reason=rehearsal")
	eventually(t, 20*time.Second, "the fan is refused", func() bool {
		r, err := send(t.Context(), "POST", c.bookings[1]+"/v1/showtimes/"+show+"/holds", fan.session, `{"seats":["A1"]}`)
		return err == nil && r.status == 403
	})
	eventually(t, 20*time.Second, "the slot is free and the place expired", func() bool {
		r, err := send(t.Context(), "GET", c.edges[1]+"/v1/rooms/cinema/place", fan.place, "")
		return err == nil && r.text("status") == "expired" && !strings.Contains(r.body, `"revoked"`)
	})
	again := call(t, 200, "POST", c.edges[1]+"/v1/rooms/cinema/places", "", "", "Idempotency-Key", "fan")
	if again.text("token") != fan.place {
		t.Errorf("another place than before: %s", again.body)
	}
	for body, want := range map[string]int{
		`{"customers":["x"]}`:                                       422,
		`{"reason":"r"}`:                                            422,
		`{"places":["A5"],"reason":"r"}`:                            422,
		`{"everybodyBefore":"yesterday","reason":"r"}`:              422,
		`{"everybodyBefore":"2999-01-01T00:00:00Z","reason":"r"}`:   422,
		`{"customers":"x","reason":"r"}`:                            400,
		`{"customers":["` + strings.Repeat(`x","`, 10_001) + `y"]}`: 422,
	} {
		call(t, want, "POST", c.admins[0]+"/v1/admin/rooms/cinema/revocations", operatorToken, body)
	}
	call(t, 404, "POST", c.admins[0]+"/v1/admin/rooms/nowhere/revocations", operatorToken, `{"customers":["x"],"reason":"r"}`)
	call(t, 401, "POST", c.admins[0]+"/v1/admin/rooms/cinema/revocations", "", `{"customers":["x"],"reason":"r"}`)
	mustUsher(t, nil, "audit", "--config="+c.config)
}
