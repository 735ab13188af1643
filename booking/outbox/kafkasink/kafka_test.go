package kafkasink

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"usher/booking/bookingtest"
	"usher/booking/outbox"
)

// kafka is a broker of its own, KRaft alone, on a free port of this machine.
type kafka struct {
	t       *testing.T
	libs    string // the jars
	config  string
	addr    string
	process *exec.Cmd
	out     bytes.Buffer
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port //nolint:errcheck // it is one
}

func newKafka(t *testing.T, libs string) *kafka {
	t.Helper()
	dir := t.TempDir()
	broker, controller := freePort(t), freePort(t)
	k := &kafka{t: t, libs: libs, config: filepath.Join(dir, "server.properties"), addr: fmt.Sprintf("127.0.0.1:%d", broker)}
	if err := os.WriteFile(k.config, fmt.Appendf(nil, `
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:%[2]d
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s/logs
num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
`, broker, controller, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	format := exec.CommandContext(t.Context(), "java", "-Xmx128m", "-cp", libs+"/*", "kafka.tools.StorageTool",
		"format", "--standalone", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", k.config)
	if out, err := format.CombinedOutput(); err != nil {
		t.Fatalf("format: %v\n%s", err, out)
	}
	return k
}

func (k *kafka) start() {
	k.t.Helper()
	//nolint:noctx // it is killed by the test
	k.process = exec.Command("java", "-Xmx256m", "-cp", k.libs+"/*", "kafka.Kafka", k.config)
	k.process.Stdout, k.process.Stderr = &k.out, &k.out
	if err := k.process.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(k.kill)
	client, err := kgo.NewClient(kgo.SeedBrokers(k.addr))
	if err != nil {
		k.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(k.t.Context(), 90*time.Second)
	defer cancel()
	for client.Ping(ctx) != nil {
		if ctx.Err() != nil {
			k.t.Fatal("the broker does not come up")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// kill ends it at once, as a crash does.
func (k *kafka) kill() {
	if k.process.ProcessState == nil {
		_ = k.process.Process.Kill()
		_ = k.process.Wait()
	}
}

// make kafka-test: 3,000 events of 600 bookings by three relays, while the broker
// is killed twice. Each event arrives, in order by booking.
func TestEventsReachARealKafka(t *testing.T) {
	libs := os.Getenv("USHER_KAFKA")
	if libs == "" {
		t.Skip("needs a Kafka broker: make kafka-test")
	}
	k := newKafka(t, libs)
	k.start()
	pool := bookingtest.Pool(t)
	const bookings, each = 600, 5
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 3 {
		r, err := outbox.NewRelay(pool, outbox.RelayOptions{Sink: newSink(t, Options{Brokers: []string{k.addr}, Topic: topic}), Batch: 50})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = r.Run(ctx) })
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE buyers AS SELECT gen_random_uuid() AS id FROM generate_series(1, $1)`, bookings); err != nil {
		t.Fatal(err)
	}
	for seq := 1; seq <= each; seq++ {
		if _, err := pool.Exec(ctx, `
			INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
			SELECT 'show', gen_random_uuid(), id, $1, 'BookingConfirmed', jsonb_build_object('seq', $1::int) FROM buyers`, seq); err != nil {
			t.Fatal(err)
		}
		if seq == 2 || seq == 4 {
			time.Sleep(50 * time.Millisecond) // into the middle of the sending
			k.kill()
			k.start()
		}
	}
	begin := time.Now()
	records := 0
	got := consume(t, []string{k.addr}, func(got map[string][]*kgo.Record) bool {
		done := 0
		for _, of := range got {
			if header(of[len(of)-1], "seq") == strconv.Itoa(each) {
				done++
			}
		}
		return done == bookings
	})
	for key, of := range got {
		last := 0
		records += len(of)
		for _, r := range of {
			seq, _ := strconv.Atoi(header(r, "seq"))
			if seq > last+1 || r.Partition != of[0].Partition {
				t.Errorf("booking %s: %d after %d", key, seq, last)
			}
			last = max(last, seq)
		}
	}
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var unsent int
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM outbox WHERE sent_at IS NULL`).Scan(&unsent); err != nil {
			t.Fatal(err)
		}
		if unsent == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d are not marked", unsent)
		}
	}
	t.Logf("%d events of %d bookings in %d records, all %s after the last was written; %d came twice",
		bookings*each, bookings, records, time.Since(begin).Round(time.Millisecond), records-bookings*each)
}
