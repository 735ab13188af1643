package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"usher/booking"
	"usher/internal/rounds"
	"usher/queue"
)

// bridge tells Redis what Postgres knows. It is the only place where the types
// of the line and of the box office meet.
type bridge struct {
	rooms      opener
	office     reporter
	line       ledger
	bookingURL string
	every      time.Duration
	log        *slog.Logger
	metrics    bridgeMetrics
	first      chan struct{} // closed after the first turn, whatever came of it
	ships      rounds.Rounds[string]

	cannotOpen bool // the last OpenDue failed; run's goroutine alone has it

	mu     sync.Mutex
	memory map[string]lineMemory // by room
	failed map[string]bool       // rooms whose last shipment failed, "" for the reading
}

// opener moves the rooms whose time has come.
type opener interface {
	OpenDue(ctx context.Context) ([]booking.RoomStep, error)
}

// reporter is the box office as the bridge sees it.
type reporter interface {
	Reports(ctx context.Context) ([]booking.RoomReport, error)
	Revoked(room string) *booking.Revoked
	FirstMemory(ctx context.Context, room string, incarnation int64) (bool, error)
	Served(ctx context.Context, room, after string, limit int) ([]booking.Visit, string, error)
}

// ledger is the line as the bridge sees it.
type ledger interface {
	PutSettings(ctx context.Context, s queue.Settings) error
	PutReport(ctx context.Context, room string, r queue.Report) error
	PutRevoked(ctx context.Context, room string, r queue.Revoked) error
	Recovery(ctx context.Context, room string) (queue.Recovery, error)
	First(ctx context.Context, room string, incarnation int64) error
	PutServed(ctx context.Context, room string, served []queue.Served) error
	Resume(ctx context.Context, room string, incarnation int64, since time.Time) (bool, error)
}

// roomsAtOnce bounds how many rooms are shipped at the same time.
const roomsAtOnce = 8

func (a *App) buildBridge() error {
	c := a.config()
	line, err := queue.New(a.rdb, a.bridgeLine())
	if err != nil {
		return err
	}
	m, err := newBridgeMetrics(a.registry)
	if err != nil {
		return err
	}
	b := &bridge{
		rooms: a.rooms, office: a.office, line: line, bookingURL: a.urlOf("booking", c.Booking.PublicURL), every: c.Booking.BridgeEvery,
		log: a.log.With("component", "bridge"), metrics: m, memory: map[string]lineMemory{}, failed: map[string]bool{}, first: make(chan struct{}),
		ships: rounds.Rounds[string]{Width: roomsAtOnce, Grace: c.Booking.BridgeEvery, Patience: 2 * c.Booking.BridgeEvery},
	}
	a.bridge.Store(b)
	a.spawn("bridge", b.run)
	k := &drawKeeper{
		rooms: a.rooms, line: line, push: b.push, every: c.Booking.BridgeEvery, log: b.log, failing: map[string]bool{},
	}
	a.spawn("draws", k.run)
	return nil
}

// bridgeLine makes a line of the bridge's own, which is never run and signs
// nothing: it only carries reports. Its secret is for the constructor. Its claim
// window is the edge's: a report ends the invitations that have stood for so long.
func (a *App) bridgeLine() queue.Options {
	unused := make([]byte, 32)
	_, _ = rand.Read(unused) // never fails since Go 1.24
	return queue.Options{
		Log: a.log, PlaceSecrets: [][]byte{unused}, ClaimWindow: a.config().Edge.ClaimWindow, Registerer: prometheus.NewRegistry(),
	}
}

func (b *bridge) run(ctx context.Context) error {
	defer b.ships.Wait()
	b.runOnce(ctx)
	close(b.first)
	for ; ; b.runOnce(ctx) {
		// Jittered: of two processes in step the line would hear only the one that reads
		// later, and of the other's lanes nothing.
		pause := time.NewTimer(time.Duration(float64(b.every) * (0.85 + 0.3*mathrand.Float64())))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

// runOnce ships every room once. A room that fails, or whose node of the cluster is
// silent, does not keep the others waiting, and a store that hangs does not keep the
// next turn: the reading and each room have two periods.
func (b *bridge) runOnce(ctx context.Context) {
	start := time.Now()
	reports, err := b.read(ctx)
	b.note(ctx, "", err)
	if err != nil {
		return
	}
	names, of := make([]string, len(reports)), make(map[string]booking.RoomReport, len(reports))
	for i, r := range reports {
		names[i], of[r.Room.ID] = r.Room.ID, r
	}
	_ = b.ships.Run(ctx, names, func(ctx context.Context, room string) error { // failures are noted by room
		err := b.ship(ctx, of[room], start)
		b.note(ctx, room, err)
		return err
	})
}

func (b *bridge) read(ctx context.Context) ([]booking.RoomReport, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*b.every)
	defer cancel()
	b.openDue(ctx) // before the reading, so that this turn ships what it opened
	return b.office.Reports(ctx)
}

// openDue must not keep the turn from its reports: it has a part of the time, and
// its failure is logged when it begins and when it ends.
func (b *bridge) openDue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, b.every/2)
	defer cancel()
	steps, err := b.rooms.OpenDue(ctx)
	switch {
	case err != nil && !b.cannotOpen && !errors.Is(ctx.Err(), context.Canceled):
		b.log.Warn("rooms that are due cannot be opened; the bridge tries on", "err", err)
	case err == nil && b.cannotOpen:
		b.log.Info("rooms that are due are opened again")
	}
	b.cannotOpen = err != nil
	for _, s := range steps {
		b.log.Info("a room moved on schedule", "room", s.ID, "from", s.From, "to", s.To)
	}
}

// ship ships a report whose reading began at read.
func (b *bridge) ship(ctx context.Context, r booking.RoomReport, read time.Time) error {
	if err := b.line.PutSettings(ctx, b.settings(r.Room)); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	// Before the report, which frees the slots of revoked passes; and a list that does
	// not go through keeps no report from going.
	revoked := b.shipRevoked(ctx, r.Room.ID)
	if err := b.line.PutReport(ctx, r.Room.ID, reportOf(r)); err != nil {
		return errors.Join(fmt.Errorf("report: %w", err), revoked)
	}
	if revoked != nil {
		return fmt.Errorf("revocations: %w", revoked)
	}
	if err := b.recover(ctx, r.Room.ID, read); err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	return nil
}

// push ships an operator's change at once. It may fail: the next turn ships it.
func (b *bridge) push(ctx context.Context, room booking.Room) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return b.line.PutSettings(ctx, b.settings(room))
}

func (b *bridge) settings(r booking.Room) queue.Settings {
	return queue.Settings{
		Room: r.ID, Title: r.Title, Mode: r.Mode, State: r.State, RatePerMinute: r.RatePerMinute, Cap: r.Cap,
		OpensAt: r.OpensAt, GathersAt: r.GathersAt, Timezone: r.Timezone, Run: r.Run, Version: r.Version, BookingURL: b.bookingURL,
		Draw: drawSettings(r), Guard: true, Valve: r.Valve, PriorityShare: r.PriorityShare,
	}
}

func reportOf(r booking.RoomReport) queue.Report {
	return queue.Report{
		At: r.At, Seq: r.Seq, Available: r.Available, Total: r.Total, SoldOut: r.SoldOut,
		Living: slotsOf(r.Living), Ended: slotsOf(r.Ended), Revoked: slotsOf(r.Revoked),
		Lanes: queue.LaneReport{QueueWait: r.Lanes.QueueWait, Batch: r.Lanes.Batch, Depth: r.Lanes.Depth, Shed: r.Lanes.Shed, HoldDelay: r.Lanes.HoldDelay},
	}
}

func slotsOf(refs []booking.SlotRef) []queue.SlotRef {
	out := make([]queue.SlotRef, len(refs))
	for i, r := range refs {
		out[i] = queue.SlotRef{PlaceID: r.PlaceID, JTI: r.JTI, Began: r.Began}
	}
	return out
}

// note counts a shipment and logs when its outcome changes, not each second of
// an outage.
func (b *bridge) note(ctx context.Context, room string, err error) {
	b.metrics.shipped(err)
	b.mu.Lock()
	was := b.failed[room]
	b.failed[room] = err != nil
	b.mu.Unlock()
	switch {
	case err != nil && !was && !errors.Is(ctx.Err(), context.Canceled):
		b.log.Warn("the bridge cannot ship; it tries on", "room", room, "err", err)
	case err == nil && was:
		b.log.Info("the bridge ships again", "room", room)
	}
}

type bridgeMetrics struct {
	ships *prometheus.CounterVec
	last  prometheus.Gauge
}

func newBridgeMetrics(reg prometheus.Registerer) (bridgeMetrics, error) {
	m := bridgeMetrics{
		ships: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "usher_bridge_shipments_total", Help: "Rooms shipped to Redis, and readings of Postgres, by outcome.",
		}, []string{"outcome"}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "usher_bridge_last_success_timestamp_seconds", Help: "When the bridge last shipped something.",
		}),
	}
	for _, c := range []prometheus.Collector{m.ships, m.last} {
		if err := reg.Register(c); err != nil {
			return m, fmt.Errorf("bridge: metrics: %w", err)
		}
	}
	return m, nil
}

func (m bridgeMetrics) shipped(err error) {
	if err != nil {
		m.ships.WithLabelValues("failed").Inc()
		return
	}
	m.ships.WithLabelValues("ok").Inc()
	m.last.SetToCurrentTime()
}
