package configs

import (
	"net"
	"slices"
	"strings"
)

// Events says where what happens to bookings is told: a Kafka topic where brokers
// are named, else a file, else nowhere; then it is kept until somewhere is named.
type Events struct {
	Brokers   []string `koanf:"brokers"` // host:port
	Topic     string   `koanf:"topic"`
	TLS       bool     `koanf:"tls"`
	Username  string   `koanf:"username"`
	Password  Secret   `koanf:"password" file:"yes"`
	Mechanism string   `koanf:"mechanism"`       // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	File      string   `koanf:"file" path:"yes"` // one line of JSON each
}

func defaultEvents() Events { return Events{Topic: "booking-events", Mechanism: "SCRAM-SHA-512"} }

// topicLetters are Kafka's.
const topicLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

func (c *Config) checkEvents(bad report) {
	e := c.Booking.Events
	for i, b := range e.Brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			bad("booking.events.brokers", "entry %d must be host:port, not %q", i+1, b)
		}
	}
	if e.Topic == "" || len(e.Topic) > 249 || strings.Trim(e.Topic, topicLetters) != "" || strings.Trim(e.Topic, ".") == "" {
		bad("booking.events.topic", "must be 1 to 249 letters, digits, dots, underscores or hyphens, not %q", e.Topic)
	}
	if !slices.Contains([]string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}, e.Mechanism) {
		bad("booking.events.mechanism", "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, not %q", e.Mechanism)
	}
	if (e.Username == "") != (e.Password == "") {
		bad("booking.events.password", "and booking.events.username need each other")
	}
}
