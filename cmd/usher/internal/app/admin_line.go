package app

import (
	"context"
	"time"

	"usher/booking"
	"usher/internal/basehttp"
	"usher/queue"
)

// lookTimeout bounds an operator's look at a line: the room's own row is told
// without it when Redis is away.
const lookTimeout = 500 * time.Millisecond

var probValve = basehttp.NewProblem(422, "valve-unknown", "A valve is fixed or adaptive")

// lineDoc is a room's line at the moment of asking.
type lineDoc struct {
	Waiting    int   `json:"waiting"`  // in both lines
	Priority   int   `json:"priority"` // of them, in the priority line
	Called     int   `json:"called"`   // standing by included
	StandingBy int   `json:"standingBy"`
	Inside     int   `json:"inside"`
	Admitted   int64 `json:"admitted"` // since the room began
}

// valveDoc is the room's valve: what is set, and what is in force and why. Without
// Redis only Mode is known.
type valveDoc struct {
	Mode   string  `json:"mode"`
	Rate   *int    `json:"rate,omitempty"`
	Cap    *int    `json:"cap,omitempty"`
	Reason string  `json:"reason,omitempty"`
	Since  *string `json:"since,omitempty"`
}

// looker reads one board.
type looker interface {
	Look(ctx context.Context, room string) (queue.RoomView, error)
}

// watch adds what the line says to a room's document. The booking process runs no
// boards: it reads one, now.
func (b *bridge) watch(ctx context.Context, d *adminRoomDoc, r booking.Room) {
	line, ok := b.line.(looker)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	v, err := line.Look(ctx, r.ID)
	if err != nil {
		return // the row is told all the same
	}
	d.Line = &lineDoc{Waiting: v.Waiting, Priority: v.Priority, Called: v.Called, StandingBy: v.StandingBy, Inside: v.Inside, Admitted: v.Admitted}
	if v.Valve.Mode != r.Valve {
		return // Redis has not heard of the last change yet
	}
	d.Valve.Rate, d.Valve.Cap, d.Valve.Reason = &v.Valve.Rate, &v.Valve.Cap, string(v.Valve.Reason)
	d.Valve.Since = stampOrNull(v.Valve.Since)
}
