package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"usher/booking"
	"usher/internal/rounds"
	"usher/queue"
)

// drawSettings are what the line is told of a room's draw. The seed is a secret
// until the drawing has begun: Redis is read by more people than the database is.
func drawSettings(r booking.Room) queue.DrawSettings {
	if r.Mode != "draw" && r.Draw.At.IsZero() {
		return queue.DrawSettings{}
	}
	d := queue.DrawSettings{
		Commitment: queue.DrawCommitment(r.ID, r.Run, r.Draw.Seed[:]), PublicValue: r.Draw.PublicValue,
		Digest: r.Draw.Digest, Entries: r.Draw.Entries, Cut: r.Draw.Cut, At: r.Draw.At,
	}
	if r.State == "drawing" || !r.Draw.At.IsZero() {
		d.Seed = r.Draw.Seed[:]
	}
	return d
}

// drawKeeper brings what was drawn from Redis to Postgres, which opens the room,
// and puts the list back into a Redis that lost it. It is a loop beside the bridge's:
// a list of a million places takes longer than a report may be late.
type drawKeeper struct {
	rooms drawRooms
	line  drawLine
	push  func(context.Context, booking.Room) error
	every time.Duration
	log   *slog.Logger

	keeps   rounds.Rounds[string]
	mu      sync.Mutex
	failing map[string]bool // rooms whose last turn failed, "" for the reading; under mu
}

// drawRooms are the rooms' rows as a drawKeeper sees them.
type drawRooms interface {
	List(ctx context.Context) ([]booking.Room, error)
	FinishDraw(ctx context.Context, room string, d booking.DrawResult) (booking.Room, error)
	DrawEntries(ctx context.Context, room string, run int) ([]byte, error)
}

// drawLine is the line as a drawKeeper sees it.
type drawLine interface {
	Drawn(ctx context.Context, room string) (queue.DrawResult, error)
	KeepsEntries(ctx context.Context, room string, digest [32]byte, entries int) (bool, error)
	PutEntries(ctx context.Context, room string, d queue.DrawResult) error
}

// drawTurn bounds the work on one room.
const drawTurn = 30 * time.Second

func (k *drawKeeper) run(ctx context.Context) error {
	// Two at once: a list may be 16 bytes a place of a million.
	k.keeps.Width, k.keeps.Grace, k.keeps.Patience = 2, k.every, drawTurn
	defer k.keeps.Wait()
	tick := time.NewTicker(k.every)
	defer tick.Stop()
	for {
		k.runOnce(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (k *drawKeeper) runOnce(ctx context.Context) {
	rooms, err := k.list(ctx)
	k.note(ctx, "", err)
	var names []string
	of := map[string]booking.Room{}
	for _, r := range rooms {
		if r.State == "drawing" || !r.Draw.At.IsZero() && r.State != "closed" {
			names, of[r.ID] = append(names, r.ID), r
		}
	}
	_ = k.keeps.Run(ctx, names, func(ctx context.Context, room string) error { // failures are noted by room
		work := k.restore
		if of[room].State == "drawing" {
			work = k.finish
		}
		err := work(ctx, of[room])
		k.note(ctx, room, err)
		return err
	})
}

func (k *drawKeeper) list(ctx context.Context) ([]booking.Room, error) {
	ctx, cancel := context.WithTimeout(ctx, drawTurn)
	defer cancel()
	return k.rooms.List(ctx)
}

func (k *drawKeeper) finish(ctx context.Context, r booking.Room) error {
	d, err := k.line.Drawn(ctx, r.ID)
	if errors.Is(err, queue.ErrNotDrawn) {
		return nil
	}
	if err != nil {
		return err
	}
	after, err := k.rooms.FinishDraw(ctx, r.ID, booking.DrawResult{Run: d.Run, Digest: d.Digest, Cut: d.Cut, Entries: d.Entries})
	if err != nil {
		return err
	}
	k.log.Info("a room was drawn and is open", "room", r.ID, "entries", after.Draw.Entries)
	if err := k.push(ctx, after); err != nil {
		k.log.Warn("the room's opening waits for the bridge", "room", r.ID, "err", err)
	}
	return nil
}

func (k *drawKeeper) restore(ctx context.Context, r booking.Room) error {
	there, err := k.line.KeepsEntries(ctx, r.ID, r.Draw.Digest, r.Draw.Entries)
	if err != nil || there {
		return err
	}
	entries, err := k.rooms.DrawEntries(ctx, r.ID, r.Run)
	if err != nil {
		return err
	}
	if queue.EntriesDigest(entries) != r.Draw.Digest {
		return fmt.Errorf("the list of the draw of room %s in the database is not the one that was drawn", r.ID)
	}
	return k.line.PutEntries(ctx, r.ID, queue.DrawResult{Run: r.Run, Digest: r.Draw.Digest, Cut: r.Draw.Cut, Entries: entries})
}

// note logs when trouble begins and when it ends.
func (k *drawKeeper) note(ctx context.Context, room string, err error) {
	k.mu.Lock()
	was := k.failing[room]
	k.failing[room] = err != nil
	k.mu.Unlock()
	switch {
	case err != nil && !was && !errors.Is(ctx.Err(), context.Canceled):
		k.log.Warn("a draw cannot be kept for the moment", "room", room, "err", err)
	case err == nil && was:
		k.log.Info("the draw is kept again", "room", room)
	}
}
