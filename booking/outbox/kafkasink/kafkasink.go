// Package kafkasink sends the outbox's events to a Kafka topic. Records are keyed by the
// booking's id, so a booking's events lie in one partition, in order; the producer is
// idempotent and waits for all in-sync replicas.
package kafkasink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"usher/booking/outbox"
)

// The ways to log in at the brokers.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Options configure a Sink; Brokers and Topic are needed.
type Options struct {
	Brokers            []string // host:port; one that answers is enough to find the others
	Topic              string   // it must exist, unless the brokers make topics by themselves
	TLS                bool     // with the machine's root certificates
	Username, Password string   // "" and "": no login
	Mechanism          string   // Plain, ScramSHA256 or ScramSHA512
}

// Sink is an outbox.Sink. It is safe for concurrent use.
type Sink struct {
	client *kgo.Client
	topic  string
}

// deliverWithin bounds a record's stay in the producer: the relay sends it again.
const deliverWithin = 10 * time.Second

// New checks the options. It asks no broker: one that is away delays events and nothing
// else.
func New(o Options) (*Sink, error) {
	if len(o.Brokers) == 0 || o.Topic == "" {
		return nil, errors.New("kafkasink: brokers and a topic are needed")
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...), kgo.ClientID("usher"), kgo.DefaultProduceTopic(o.Topic),
		kgo.RecordDeliveryTimeout(deliverWithin), kgo.ProduceRequestTimeout(5 * time.Second),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.AllowAutoTopicCreation(),
	}
	if o.TLS {
		opts = append(opts, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if o.Username != "" || o.Password != "" {
		login, err := mechanism(o)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(login))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("kafkasink: %w", err)
	}
	return &Sink{client: client, topic: o.Topic}, nil
}

func mechanism(o Options) (sasl.Mechanism, error) {
	switch o.Mechanism {
	case Plain:
		return plain.Auth{User: o.Username, Pass: o.Password}.AsMechanism(), nil
	case ScramSHA256:
		return scram.Auth{User: o.Username, Pass: o.Password}.AsSha256Mechanism(), nil
	case ScramSHA512:
		return scram.Auth{User: o.Username, Pass: o.Password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("kafkasink: no mechanism %q; there are %s, %s and %s", o.Mechanism, Plain, ScramSHA256, ScramSHA512)
}

// Name tells the topic.
func (s *Sink) Name() string { return "kafka topic " + s.topic }

// Close drops what is under way; a relay must not use the sink any more.
func (s *Sink) Close() { s.client.Close() }

// Send produces the messages side by side; within one call no two may have one key. A
// record whose delivery is unknown counts as not sent, and comes twice if it arrived.
func (s *Sink) Send(ctx context.Context, messages []outbox.Message) []error {
	errs := make([]error, len(messages))
	var all sync.WaitGroup
	for i, m := range messages {
		all.Add(1)
		s.client.Produce(ctx, &kgo.Record{
			Key: []byte(m.BookingID), Value: m.Payload,
			Headers: []kgo.RecordHeader{
				{Key: "eventId", Value: []byte(m.EventID)}, {Key: "type", Value: []byte(m.Type)},
				{Key: "seq", Value: []byte(strconv.Itoa(m.Seq))},
			},
		}, func(_ *kgo.Record, err error) {
			errs[i] = err
			all.Done()
		})
	}
	all.Wait()
	return errs
}
