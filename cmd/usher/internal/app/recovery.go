package app

import (
	"context"
	"time"

	"usher/queue"
)

// lineMemory is what the bridge knows of Redis' memory of one room. It lives in this
// process: every bridge tells all that Postgres has, and whichever is ready first
// ends the recovery.
type lineMemory struct {
	incarnation int64
	after       string    // how far the served places have been told
	told        bool      // all of them
	at          time.Time // Redis' clock when it was asked last
	heard       time.Time // … and our own then: a report that was read after it was read after at
}

const (
	servedPage  = 5000
	servedPages = 20 // a turn: the reports must go on
)

// recover looks what the line's memory is worth, once a turn behind the report. A
// memory that is the room's first has nothing to recover. Any other is told which
// places were used, and goes on once its hold is over and a report that was read
// after it has been shipped. This turn's report was read at read or later.
func (b *bridge) recover(ctx context.Context, room string, read time.Time) error {
	now, err := b.line.Recovery(ctx, room)
	if err != nil {
		return err
	}
	b.mu.Lock()
	m := b.memory[room]
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.memory[room] = m
		b.mu.Unlock()
	}()
	shipped := m.at
	if m.heard.After(read) { // a turn that took long: its answer came while this report was read
		shipped = time.Time{}
	}
	m.at, m.heard = now.At, time.Now()
	if m.incarnation != now.Incarnation {
		first, err := b.office.FirstMemory(ctx, room, now.Incarnation)
		if err != nil {
			return err
		}
		if first && now.On {
			if err := b.line.First(ctx, room, now.Incarnation); err != nil {
				return err
			}
			now.On = false
		}
		m = lineMemory{incarnation: now.Incarnation, at: now.At, heard: m.heard}
		if now.On {
			b.log.Warn("redis has forgotten a line; booking tells it who was served, and nobody is called meanwhile", "room", room)
		}
		shipped = time.Time{}
	}
	if !now.On {
		return nil
	}
	for range servedPages {
		if m.told {
			break
		}
		if err := b.tell(ctx, room, &m); err != nil {
			return err
		}
	}
	if !m.told || shipped.IsZero() {
		return nil
	}
	ended, err := b.line.Resume(ctx, room, m.incarnation, shipped)
	if ended {
		b.log.Info("the line is whole again; fans are called", "room", room)
	}
	return err
}

// tell ships one page of the places that were used.
func (b *bridge) tell(ctx context.Context, room string, m *lineMemory) error {
	visits, next, err := b.office.Served(ctx, room, m.after, servedPage)
	if err != nil {
		return err
	}
	served := make([]queue.Served, len(visits))
	for i, v := range visits {
		served[i] = queue.Served{PlaceID: v.PlaceID, Began: v.Began}
	}
	if err := b.line.PutServed(ctx, room, served); err != nil {
		return err
	}
	m.after, m.told = next, next == ""
	return nil
}
