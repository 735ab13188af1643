package queuehttp

import (
	"context"
	"errors"
	"time"

	"usher/admission/pass"
	"usher/internal/basehttp"
	"usher/queue"
)

// The problems of the line; their slugs are part of the contract.
var (
	errUnknownRoom  = basehttp.NewProblem(404, "unknown-room", "There is no such room")
	errTokenMissing = basehttp.NewProblem(401, "place-token-missing", "A place token is needed")
	errTokenInvalid = basehttp.NewProblem(401, "place-token-invalid", "The place token is not valid for this room")
	errOldRun       = basehttp.NewProblem(409, "place-from-earlier-run", "The line was started anew since this place was given out")
	errNotCalled    = basehttp.NewProblem(409, "not-called-yet", "It is not your turn yet")
	errStandBy      = basehttp.NewProblem(409, "stand-by", "Called; a slot comes free in a moment")
	errExpired      = basehttp.NewProblem(409, "place-expired", "This place has ended")
	errRoomPaused   = basehttp.NewProblem(409, "room-paused", "The room is paused; places are kept")
	errRecovering   = basehttp.NewProblem(409, "room-recovering", "The line is being put back; places are kept")
	errRoomClosed   = basehttp.NewProblem(409, "room-closed", "The room is closed")
	errNotOpenYet   = basehttp.NewProblem(409, "room-not-open-yet", "The room takes no places before it opens")
	errBindingLost  = basehttp.NewProblem(409, "binding-lost", "This browser is not the one the place was given to")
	errInviteBad    = basehttp.NewProblem(403, "invite-invalid", "This invite is not valid here")
	errInviteUsed   = basehttp.NewProblem(409, "invite-used-up", "All places of this invite are taken")
	errInviteOver   = basehttp.NewProblem(410, "invite-expired", "This invite has expired")
	errRevoked      = basehttp.NewProblem(403, "revoked", "The organiser has withdrawn this place")
	errNoDraw       = basehttp.NewProblem(404, "no-draw", "This room is not drawn")
	errNotDrawn     = basehttp.NewProblem(409, "not-drawn-yet", "The room has not been drawn yet")
	errCrossSite    = basehttp.NewProblem(403, "cross-site-request", "This call was made by another site's page")
)

// problem is the one table from the line's errors to what a client is told. An
// error it does not know goes through and becomes an opaque 500.
func problem(err error) error {
	var standBy *queue.StandByError
	var early *queue.NotOpenYetError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &standBy):
		return errStandBy.Detailf("Ask again after the time in Retry-After; this call cannot be missed any more.").
			With("retryAfterMs", standBy.RetryAfter.Milliseconds()).After(standBy.RetryAfter)
	case errors.As(err, &early):
		p := errNotOpenYet.Detailf("Come back when it opens; nobody stands in line before.")
		if !early.OpensAt.IsZero() {
			p = p.With("opensAt", stamp(early.OpensAt))
		}
		return p
	case errors.Is(err, queue.ErrUnknownRoom):
		return errUnknownRoom
	case errors.Is(err, queue.ErrBadToken):
		return errTokenInvalid
	case errors.Is(err, queue.ErrOldRun):
		return errOldRun.Detailf("Join again to get a place in the present line.")
	case errors.Is(err, queue.ErrNotCalledYet):
		return errNotCalled.Detailf("Ask for the place, and for the pass once its status is called.")
	case errors.Is(err, queue.ErrExpired):
		return errExpired.Detailf("The call was missed, the place was left, or the visit is over. Join again.")
	case errors.Is(err, queue.ErrMoveCode):
		return errMoveCode.Detailf("It is mistyped, was used by another browser or replaced, or its time is over. Places are kept.")
	case errors.Is(err, queue.ErrAdmitted):
		return errAlreadyAdmitted.Detailf("Go on in the browser that was let in.")
	case errors.Is(err, queue.ErrInviteInvalid):
		return errInviteBad.Detailf("Nothing was changed; a join without it takes a place at the end of the line.")
	case errors.Is(err, queue.ErrInviteUsedUp):
		return errInviteUsed.Detailf("A place you have is kept; a join without it takes one at the end of the line.")
	case errors.Is(err, queue.ErrInviteExpired):
		return errInviteOver.Detailf("A place you have is kept; a join without it takes one at the end of the line.")
	case errors.Is(err, queue.ErrRevoked):
		return errRevoked
	case errors.Is(err, queue.ErrRoomPaused):
		return errRoomPaused.After(2 * time.Second)
	case errors.Is(err, queue.ErrNotDrawn):
		return errNotDrawn.Detailf("The list is published when the drawing is done.")
	case errors.Is(err, queue.ErrRoomClosed):
		return errRoomClosed
	case errors.Is(err, queue.ErrRecovering) && !errors.Is(err, queue.ErrStale):
		return errRecovering.Detailf("The line's memory was lost in part and is being put back; nobody is admitted meanwhile. Keep asking for the place.").
			After(5 * time.Second)
	case errors.Is(err, queue.ErrStale), errors.Is(err, context.DeadlineExceeded), unreachable(err):
		return basehttp.ErrUnavailable.Detailf("The line cannot be reached; places are kept.").After(2 * time.Second).Because(err)
	case errors.Is(err, pass.ErrNoKey):
		return basehttp.ErrUnavailable.Detailf("No pass can be signed at the moment.").After(5 * time.Second).Because(err)
	}
	return err
}
