package configs

import (
	"errors"
	"testing"
)

func TestEventsThatGoNowhere(t *testing.T) {
	t.Parallel()
	for text, key := range map[string]string{
		`{brokers: ["kafka.example.com"]}`:           "booking.events.brokers",
		`{brokers: [":9092"]}`:                       "booking.events.brokers",
		`{topic: ""}`:                                "booking.events.topic",
		`{topic: "booking events"}`:                  "booking.events.topic",
		`{topic: ".."}`:                              "booking.events.topic",
		`{mechanism: GSSAPI}`:                        "booking.events.mechanism",
		`{username: usher}`:                          "booking.events.password",
		`{password: "0123456789012345678901234567"}`: "booking.events.password",
		`{brokers: ["a:1", "b"]}`:                    "booking.events.brokers",
	} {
		_, err := Load(Source{File: write(t, "booking: {events: "+text+"}\n")})
		var p *Problems
		if !errors.As(err, &p) || len(p.List()) != 1 || p.List()[0].Key != key {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Load(Source{File: write(t, `booking: {events: {brokers: ["[::1]:9092", "kafka:9092"], topic: box.office_1-x, file: e.jsonl}}`+"\n")}); err != nil {
		t.Error(err)
	}
}
