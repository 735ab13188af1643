package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A booking on one process is an event on a topic that another system reads.
func TestABookingIsAnEventAtTheBrokers(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.SeedTopics(2, "box-office"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	_, at := startDev(t, []string{
		"USHER_BOOKING_EVENTS_BROKERS=" + strings.Join(cluster.ListenAddrs(), ","), "USHER_BOOKING_EVENTS_TOPIC=box-office",
	})
	f := admit(t, at.Edge, at.Booking, "cinema", "events")
	show := showtime(t, at.Booking, "cinema")
	hold := call(t, 201, "POST", at.Booking+"/v1/showtimes/"+show+"/holds", f.session, `{"seats":["F5","F6"]}`)
	checkout := call(t, 201, "POST", at.Booking+"/v1/holds/"+hold.text("holdId")+"/checkout", f.session, "", "Idempotency-Key", "k1")
	if r, err := send(t.Context(), "POST", checkout.text("paymentUrl"), "", "outcome=paid", "Content-Type", "application/x-www-form-urlencoded"); err != nil || r.status >= 400 {
		t.Fatalf("pay: %v %d %s", err, r.status, r.body)
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("box-office"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	records := consumer.PollFetches(ctx).Records()
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	var event struct {
		EventID, Type, BookingID, ShowtimeID, CustomerID, Currency string
		Seq                                                        int
		Seats                                                      []string
		Amount                                                     int64
	}
	if err := json.Unmarshal(records[0].Value, &event); err != nil {
		t.Fatal(err)
	}
	if string(records[0].Key) != checkout.text("bookingId") || event.BookingID != checkout.text("bookingId") || event.Type != "BookingConfirmed" ||
		event.Seq != 1 || event.EventID == "" || event.ShowtimeID != show || len(event.Seats) != 2 || event.Amount <= 0 || event.Currency == "" {
		t.Errorf("key %s: %s", records[0].Key, records[0].Value)
	}
	eventually(t, 10*time.Second, "it counts as sent", func() bool {
		return strings.Contains(call(t, 200, "GET", at.Admin+"/metrics", "", "").body, `usher_outbox_sent_total{type="BookingConfirmed"} 1`)
	})
}
