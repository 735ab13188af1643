package kafkasink

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"usher/booking/bookingtest"
	"usher/booking/outbox"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

const topic = "booking-events"

// brokers are three that speak Kafka's protocol; make kafka-test has a real one.
func brokers(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(4, topic)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newSink(t *testing.T, o Options) *Sink {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// consume reads the topic from its start until enough says so, and returns all records
// by key, in each partition's order.
func consume(t *testing.T, addrs []string, enough func(map[string][]*kgo.Record) bool) map[string][]*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	got := map[string][]*kgo.Record{}
	for !enough(got) {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { got[string(r.Key)] = append(got[string(r.Key)], r) })
		if ctx.Err() != nil {
			t.Fatalf("after 60s: %d keys", len(got))
		}
	}
	return got
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// The whole way, with several relays and brokers that lose their leadership, refuse,
// append and say they did not, and cut the connection.
func TestEventsReachTheTopicInOrderThroughFaults(t *testing.T) {
	t.Parallel()
	cluster := brokers(t)
	produce := []kmsg.Key{kmsg.Produce}
	faults := []*kfake.FaultHandle{
		cluster.Fault(kfake.Fault{Keys: produce, Err: kerr.NotLeaderForPartition, Count: 3}),
		cluster.Fault(kfake.Fault{Keys: produce, Err: kerr.RequestTimedOut, Count: 3}), // appended all the same
		cluster.Fault(kfake.Fault{Keys: produce, Err: kerr.NotEnoughReplicas, Count: 3}),
		cluster.Fault(kfake.Fault{Keys: produce, Err: kerr.MessageTooLarge, Count: 3}), // not tried again by the client
	}
	var cuts int
	cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if cuts++; cuts%7 == 0 && cuts < 60 {
			return nil, fmt.Errorf("cut"), true
		}
		return nil, nil, false
	})
	pool := bookingtest.Pool(t)
	const bookings, each = 60, 4
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
		SELECT 'show', gen_random_uuid(), gen_random_uuid(), s, 'BookingConfirmed', jsonb_build_object('seq', s)
		  FROM generate_series(1, $1) b, generate_series(1, 1) s`, bookings); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
		SELECT showtime_id, gen_random_uuid(), booking_id, s, 'BookingRefunded', jsonb_build_object('seq', s)
		  FROM outbox, generate_series(2, $1) s ORDER BY random()`, each); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 3 {
		r, err := outbox.NewRelay(pool, outbox.RelayOptions{
			Sink: newSink(t, Options{Brokers: cluster.ListenAddrs(), Topic: topic}), Every: 50 * time.Millisecond, Again: 50 * time.Millisecond, Batch: 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = r.Run(ctx) })
	}
	got := consume(t, cluster.ListenAddrs(), func(got map[string][]*kgo.Record) bool {
		n := 0
		for _, records := range got {
			if header(records[len(records)-1], "seq") == strconv.Itoa(each) {
				n++
			}
		}
		return n == bookings
	})
	for key, records := range got {
		last := 0
		for _, r := range records {
			seq, _ := strconv.Atoi(header(r, "seq"))
			if seq > last+1 || r.Partition != records[0].Partition || header(r, "eventId") == "" || header(r, "type") == "" {
				t.Errorf("booking %s: %d after %d, partition %d, %v", key, seq, last, r.Partition, r.Headers)
			}
			if want := fmt.Sprintf(`{"seq": %d}`, seq); string(r.Value) != want {
				t.Errorf("value %s, want %s", r.Value, want)
			}
			last = max(last, seq)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var unsent int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox WHERE sent_at IS NULL`).Scan(&unsent); err != nil {
			t.Fatal(err)
		}
		if unsent == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d are not marked", unsent)
		}
	}
	for i, f := range faults {
		if f.Hits() == 0 {
			t.Errorf("fault %d was never met", i)
		}
	}
}

// A topic that is not there and brokers that are away are errors soon, never a wait
// without end.
func TestBrokersThatAreAway(t *testing.T) {
	t.Parallel()
	s := newSink(t, Options{Brokers: []string{"127.0.0.1:1"}, Topic: topic})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	errs := s.Send(ctx, []outbox.Message{{BookingID: "a", Payload: []byte("{}")}, {BookingID: "b", Payload: []byte("{}")}})
	if errs[0] == nil || errs[1] == nil || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %s", errs, time.Since(start))
	}
}

func TestBrokersThatAskForALogin(t *testing.T) {
	t.Parallel()
	cluster := brokers(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "usher", "p"),
		kfake.Superuser("SCRAM-SHA-256", "usher256", "p"), kfake.Superuser("SCRAM-SHA-512", "usher512", "p"))
	send := func(o Options) error {
		o.Brokers, o.Topic = cluster.ListenAddrs(), topic
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return newSink(t, o).Send(ctx, []outbox.Message{{BookingID: "a", Payload: []byte("{}")}})[0]
	}
	for _, o := range []Options{
		{Username: "usher", Password: "p", Mechanism: Plain},
		{Username: "usher256", Password: "p", Mechanism: ScramSHA256},
		{Username: "usher512", Password: "p", Mechanism: ScramSHA512},
	} {
		if err := send(o); err != nil {
			t.Errorf("%s: %v", o.Mechanism, err)
		}
	}
	if err := send(Options{Username: "usher", Password: "wrong", Mechanism: Plain}); err == nil {
		t.Error("a wrong password was taken")
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{}, {Brokers: []string{"a:1"}}, {Topic: topic}, {Brokers: []string{"a:1"}, Topic: topic, Username: "u", Mechanism: "KERBEROS"},
	} {
		if s, err := New(o); err == nil {
			s.Close()
			t.Errorf("%+v", o)
		}
	}
	if !slices.Contains([]string{"kafka topic " + topic}, newSink(t, Options{Brokers: []string{"a:1"}, Topic: topic}).Name()) {
		t.Error("name")
	}
}
