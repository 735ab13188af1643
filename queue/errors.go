package queue

import (
	"errors"
	"fmt"
	"time"
)

// What a verb refuses with. Trouble with Redis is ErrStale, wrapping the cause;
// anything else is a bug here.
var (
	// ErrUnknownRoom: no bridge has ever shipped settings for that name.
	ErrUnknownRoom = errors.New("queue: unknown room")
	// ErrBadToken: the place token is forged, cut, or of another room.
	ErrBadToken = errors.New("queue: place token is not valid")
	// ErrOldRun: the operator reset the room after the place was given out.
	ErrOldRun = errors.New("queue: place is from an earlier run of the room")
	// ErrNotCalledYet: the place is still waiting.
	ErrNotCalledYet = errors.New("queue: not called yet")
	// ErrExpired: the place missed its call, left, or its visit is over; join again.
	ErrExpired = errors.New("queue: place has ended")
	// ErrAdmitted: the place is inside already; it does not move any more.
	ErrAdmitted = errors.New("queue: the place has been admitted")
	// ErrMoveCode: the code moves no place: mistyped, used, replaced or run out.
	ErrMoveCode = errors.New("queue: the code moves no place")
	// ErrRoomPaused: nobody is admitted now; the place and its call are kept.
	ErrRoomPaused = errors.New("queue: room is paused")
	// ErrRoomClosed: the room takes nobody (state closed, or mode reject).
	ErrRoomClosed = errors.New("queue: room is closed")
	// ErrRecovering: Redis forgot a part of the line, which is being put back from what
	// fans hold and booking knows. Nobody is called or admitted; no place is lost.
	ErrRecovering = errors.New("queue: the line is being put back")
	// ErrStale: Redis cannot be asked and memory does not know enough to answer.
	ErrStale = errors.New("queue: the line cannot be read at the moment")
)

// NotOpenYetError refuses a new place in a room whose doors are not open yet. The
// gathering, which lines up, is a state of its own.
type NotOpenYetError struct {
	OpensAt time.Time // when places are given (the gathering's, of a draw); zero without a schedule
}

func (e *NotOpenYetError) Error() string {
	if e.OpensAt.IsZero() {
		return "queue: room is not open yet"
	}
	return "queue: room is not open until " + e.OpensAt.Format(time.RFC3339)
}

// StandByError is the claim of a called fan for whom there is no slot, or no
// turn of the rate, in this very moment. The claim window has stopped: the place
// cannot be missed any more, and a slot will be granted in score order.
type StandByError struct {
	RetryAfter time.Duration // when to ask again; > 0
}

func (e *StandByError) Error() string {
	return fmt.Sprintf("queue: standing by, ask again in %s", e.RetryAfter)
}
