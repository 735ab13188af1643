package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Message is an event on its way.
type Message struct {
	BookingID string // the key: messages of one key keep their order
	EventID   string
	Type      string
	Seq       int
	Payload   []byte // an Event as JSON
}

// Sink is where a relay sends events.
type Sink interface {
	// Send returns one error a message, nil for those that are durable there. It must
	// return soon after ctx ends.
	Send(ctx context.Context, messages []Message) []error
	// Name is for the log: "kafka topic …".
	Name() string
	Close()
}

// RelayOptions configure a Relay; only Sink is needed.
type RelayOptions struct {
	Log        *slog.Logger
	Sink       Sink
	Every      time.Duration // how often the outbox is looked at when nobody rings; default 1 s
	Batch      int           // events of one turn; default 500
	Lease      time.Duration // how long a relay has an event to itself; default 60 s
	SendWithin time.Duration // of one turn; less than the lease; default 15 s
	Again      time.Duration // when an event that could not be sent is tried again; default 2 s
	Registerer prometheus.Registerer
}

// Relay brings events from the outbox to a sink, at least once and those of one booking
// in their order; doc.go tells how. Any number of relays may work on one outbox.
type Relay struct {
	pool    *pgxpool.Pool
	o       RelayOptions
	metrics *relayMetrics
	rung    chan struct{} // somebody here wrote an event
	woken   chan struct{} // somebody anywhere did
	failing bool          // turns' alone
}

// NewRelay starts nothing.
func NewRelay(pool *pgxpool.Pool, o RelayOptions) (*Relay, error) {
	if o.Sink == nil {
		return nil, errors.New("outbox: a relay needs a sink")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("component", "outbox")
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&o.Every, time.Second}, {&o.Lease, time.Minute}, {&o.SendWithin, 15 * time.Second}, {&o.Again, 2 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if o.Batch == 0 {
		o.Batch = 500
	}
	if o.Every < 0 || o.Again < 0 || o.SendWithin <= 0 || o.SendWithin >= o.Lease || o.Batch < 1 {
		return nil, fmt.Errorf("outbox: a relay must send within less than its lease: %s, %s", o.SendWithin, o.Lease)
	}
	m, err := newRelayMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	return &Relay{pool: pool, o: o, metrics: m, rung: make(chan struct{}, 1), woken: make(chan struct{}, 1)}, nil
}

// Ring tells all relays that an event was written. It blocks nobody and may be lost:
// they look by themselves as well.
func (r *Relay) Ring() {
	select {
	case r.rung <- struct{}{}:
	default:
	}
}

// Run relays until ctx ends; it returns nil then. The sink is not closed.
func (r *Relay) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { r.bell(ctx); return nil })
	g.Go(func() error { r.listen(ctx); return nil })
	g.Go(func() error { r.watch(ctx); return nil })
	g.Go(func() error {
		for pause(ctx, r.o.Every, r.woken) {
			r.turns(ctx)
		}
		return nil
	})
	return g.Wait()
}

// pause ends after about d, or sooner when rung; it is false when ctx has ended.
func pause(ctx context.Context, d time.Duration, rung <-chan struct{}) bool {
	t := time.NewTimer(time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-rung:
	case <-t.C:
	}
	return ctx.Err() == nil
}

// turns goes on while there is something to send and the sink takes it.
func (r *Relay) turns(ctx context.Context) {
	for ctx.Err() == nil {
		sent, err := r.turn(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && !r.failing:
			r.o.Log.Error("events of bookings cannot be sent; they are kept, and the relay tries on", "to", r.o.Sink.Name(), "err", err)
			r.failing = true
		case err == nil && sent > 0 && r.failing:
			r.o.Log.Info("events of bookings are sent again", "to", r.o.Sink.Name())
			r.failing = false
		}
		if err != nil || sent == 0 {
			return
		}
	}
}

const (
	channel = "usher_outbox"

	// The oldest unsent event of each booking, and of no booking a second one: so the
	// events of a booking are in order however many relays there are, and one that cannot
	// be sent keeps no other booking's. Not by an id's order: transactions commit out of it.
	sqlLease = `
		UPDATE outbox o SET leased_until = clock_timestamp() + make_interval(secs => $2::float8)
		  FROM (SELECT h.showtime_id, h.event_id FROM outbox h
		         WHERE h.sent_at IS NULL AND (h.leased_until IS NULL OR h.leased_until <= clock_timestamp())
		           AND NOT EXISTS (SELECT FROM outbox p WHERE p.showtime_id = h.showtime_id AND p.booking_id = h.booking_id
		                            AND p.seq < h.seq AND p.sent_at IS NULL)
		         ORDER BY h.created_at LIMIT $1 FOR UPDATE OF h SKIP LOCKED) head
		 WHERE o.showtime_id = head.showtime_id AND o.event_id = head.event_id
		       AND o.sent_at IS NULL AND (o.leased_until IS NULL OR o.leased_until <= clock_timestamp())
		RETURNING o.showtime_id, o.event_id, o.booking_id::text, o.seq, o.type, o.payload::text, o.leased_until`
	sqlSent = `
		UPDATE outbox o SET sent_at = clock_timestamp(), leased_until = NULL
		  FROM unnest($1::text[], $2::uuid[]) AS k(showtime_id, event_id)
		 WHERE o.showtime_id = k.showtime_id AND o.event_id = k.event_id AND o.sent_at IS NULL`
	// Its own lease alone: another relay may have the event by now.
	sqlUnsent = `
		UPDATE outbox o SET leased_until = clock_timestamp() + make_interval(secs => $4::float8)
		  FROM unnest($1::text[], $2::uuid[], $3::timestamptz[]) AS k(showtime_id, event_id, leased_until)
		 WHERE o.showtime_id = k.showtime_id AND o.event_id = k.event_id AND o.sent_at IS NULL
		       AND o.leased_until = k.leased_until`
	sqlNotify  = `SELECT pg_notify('` + channel + `', '')`
	sqlBacklog = `
		SELECT count(*), COALESCE(extract(epoch FROM clock_timestamp() - min(created_at)), 0)::float8
		  FROM (SELECT created_at FROM outbox WHERE sent_at IS NULL ORDER BY created_at LIMIT 10000) u`
)

func init() {
	for name, sql := range map[string]string{
		"sqlLease": sqlLease, "sqlSent": sqlSent, "sqlUnsent": sqlUnsent, "sqlNotify": sqlNotify, "sqlBacklog": sqlBacklog,
	} {
		statements[name] = sql
	}
}

// leased is an event that this relay has to itself for a while.
type leased struct {
	showtime string
	event    uuid.UUID
	until    time.Time
	Message
}

// turn sends the next events. What a process that ends has under way gets two seconds
// more: an event whose fate is unknown is sent a second time.
func (r *Relay) turn(ctx context.Context) (sent int, err error) {
	rows, _ := r.pool.Query(ctx, sqlLease, r.o.Batch, r.o.Lease.Seconds())
	batch, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (leased, error) {
		var m leased
		err := row.Scan(&m.showtime, &m.event, &m.BookingID, &m.Seq, &m.Type, &m.Payload, &m.until)
		m.EventID = m.event.String()
		return m, err
	})
	if err != nil {
		return 0, fmt.Errorf("outbox: lease: %w", err)
	}
	if len(batch) == 0 {
		return 0, nil
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.SendWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(2*time.Second, cancel) })()
	messages := make([]Message, len(batch))
	for i, m := range batch {
		messages[i] = m.Message
	}
	return r.mark(ctx, batch, r.o.Sink.Send(work, messages))
}

// mark records what came of a turn, also when ctx has ended meanwhile.
func (r *Relay) mark(ctx context.Context, batch []leased, errs []error) (sent int, err error) {
	var okShows, badShows []string
	var okIDs, badIDs []uuid.UUID
	var untils []time.Time
	for i, m := range batch {
		if errs[i] == nil {
			okShows, okIDs = append(okShows, m.showtime), append(okIDs, m.event)
			r.metrics.sent.WithLabelValues(m.Type).Inc()
			continue
		}
		badShows, badIDs, untils = append(badShows, m.showtime), append(badIDs, m.event), append(untils, m.until)
		err = errs[i]
	}
	r.metrics.failures.Add(float64(len(badIDs)))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if len(okIDs) > 0 {
		if _, uerr := r.pool.Exec(ctx, sqlSent, okShows, okIDs); uerr != nil {
			err = errors.Join(err, fmt.Errorf("outbox: mark sent: %w", uerr)) // sent again when the lease is over
		}
	}
	if len(badIDs) > 0 {
		if _, uerr := r.pool.Exec(ctx, sqlUnsent, badShows, badIDs, untils, r.o.Again.Seconds()); uerr != nil {
			err = errors.Join(err, fmt.Errorf("outbox: give back: %w", uerr))
		}
	}
	return len(okIDs), err
}

// bell notifies the database of this process' events, after their commits and at most
// fifty times a second: a NOTIFY inside a confirming transaction would have all commits
// of the server queue for one lock.
func (r *Relay) bell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.rung:
		}
		if _, err := r.pool.Exec(ctx, sqlNotify); err != nil && ctx.Err() == nil {
			wake(r.woken) // nobody else hears of it; here it is known
		}
		if !pause(ctx, 20*time.Millisecond, nil) {
			return
		}
	}
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// listen has a connection of its own, outside the pool, and gets another one when it is
// lost. Nothing depends on it: turns come by themselves.
func (r *Relay) listen(ctx context.Context) {
	for {
		_ = r.hear(ctx)
		if !pause(ctx, time.Second, nil) {
			return
		}
	}
}

func (r *Relay) hear(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, r.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	wake(r.woken) // for what was missed
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		wake(r.woken)
	}
}

// watchEvery is how often the backlog is counted.
const watchEvery = 10 * time.Second

func (r *Relay) watch(ctx context.Context) {
	for {
		var unsent, age float64
		if err := r.pool.QueryRow(ctx, sqlBacklog).Scan(&unsent, &age); err == nil {
			r.metrics.unsent.Set(unsent)
			r.metrics.oldest.Set(age)
		}
		if !pause(ctx, watchEvery, nil) {
			return
		}
	}
}

type relayMetrics struct {
	sent           *prometheus.CounterVec
	failures       prometheus.Counter
	unsent, oldest prometheus.Gauge
}

func newRelayMetrics(reg prometheus.Registerer) (*relayMetrics, error) {
	m := &relayMetrics{
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "usher_outbox_sent_total", Help: "Events of bookings sent, by type.",
		}, []string{"type"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "usher_outbox_failures_total", Help: "Attempts to send an event that failed.",
		}),
		unsent: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "usher_outbox_unsent", Help: "Events of bookings that wait to be sent; counted up to 10,000.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "usher_outbox_oldest_seconds", Help: "Age of the oldest event that waits to be sent.",
		}),
	}
	for _, kind := range []string{BookingConfirmed, BookingFailed, BookingRefunded} {
		m.sent.WithLabelValues(kind)
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.sent, m.failures, m.unsent, m.oldest} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("outbox: metrics: %w", err)
		}
	}
	return m, nil
}
