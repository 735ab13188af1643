package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"usher/queue/limits"
)

// Join gives the fan a place at the tail, or finds the one they have: the same
// place and rank, whatever its state. After one missed call the place of before
// comes back; so it does after a pass that nobody used; after leaving or a finished
// visit the fan starts at the tail. Errors: ErrUnknownRoom, ErrRoomClosed and
// *NotOpenYetError (no new places; old ones are kept), ErrRevoked, ErrBadToken (Fan.Place), ErrStale;
// of Fan.Invite, by which the place is ahead of all who come without one,
// ErrInviteInvalid, ErrInviteExpired, ErrInviteUsedUp;
// and of Fan.Toll, which only a new place is charged, *limits.RefusedError,
// *limits.ProofError and limits.ErrUsed.
func (l *Line) Join(ctx context.Context, name string, fan Fan) (View, error) {
	r, b, err := l.room(ctx, name)
	if err != nil {
		return View{}, err
	}
	p, err := l.identify(name, fan)
	if err != nil {
		return View{}, err
	}
	if r.revoked.Load().place(p) {
		return View{}, l.turnAway(ctx, r, p)
	}
	var invite Invite
	if fan.Invite != "" {
		if invite, err = l.readInvite(name, fan.Invite, time.Now()); err != nil {
			return View{}, err
		}
	}
	former, run := l.former(name, b, fan, p)
	keys := r.keys
	args := []any{
		p.member[:], r.floor.Load(), micros(l.opts.ClaimWindow), keptMissed, former, run, l.witness(r),
		invite.ID, invite.Quota, keptGone, string(invite.Kind),
	}
	var charge limits.Charge
	// An invite's places are counted: they are charged no other toll.
	if fan.Toll != nil && (fan.Invite == "" || b.view.Mode == "passthrough") {
		charge = fan.Toll.For(name, p.id())
		keys, args = slices.Concat(keys, charge.Keys), append(args, charge.Blob)
	}
	reply, err := l.runTogether(ctx, r, joinScript, keys, args...)
	if err != nil {
		return View{}, err
	}
	if err := charge.Refusal(reply); err != nil {
		l.refusedToll(name, err)
		return View{}, err
	}
	switch code := text(reply, 0); code {
	case "unknown": // Redis was emptied a moment ago: this edge knows the room
		return View{}, fmt.Errorf("%w: %w", ErrStale, ErrRecovering)
	case "closed":
		return View{}, ErrRoomClosed
	case "usedup":
		return View{}, ErrInviteUsedUp
	case "early":
		return View{}, &NotOpenYetError{OpensAt: instant(number(reply, 1))}
	case "waiting", "called", "admitted":
		p.score, p.run = number(reply, 1), int(number(reply, 4))
		if old, ok := former.(int64); ok && p.score == 0 {
			p.score = old // inside by booking's word: Redis does not know the place
		}
		p.countOn(text(reply, 7))
		r.memory.remember(number(reply, 8), number(reply, 9))
		r.saw(p.score)
		if code != string(Waiting) {
			r.passed(p.score)
		}
		st := standing{status: Status(code), score: p.score, rank: int(number(reply, 2)), due: number(reply, 5)}
		if st.status == Waiting && b.view.Recovering {
			st.rank = r.told(p, 0)
		}
		v := l.view(b, p, st)
		v.Token = l.sign(p)
		if v.Created = number(reply, 3) == 1; v.Created {
			l.metrics.joins.WithLabelValues(name).Inc()
			if v.ETA != nil && !r.called(p.score) {
				r.promises.made(p.score, *v.ETA, b.view.Version, time.Now())
			}
		}
		return v, nil
	default:
		return View{}, fmt.Errorf("queue: join: unexpected reply %q", code)
	}
}

// former is the score of the place whose token the fan shows besides, and its run: a
// place that Redis has forgotten comes back by it. "" without a token of this very fan.
func (l *Line) former(name string, b *board, fan Fan, p place) (score any, run int) {
	t := fan.Former
	if t == "" {
		t = fan.Place
	}
	old, err := l.verify(name, t)
	if err != nil || old.member != p.member {
		return "", 0
	}
	return b.scoreNow(old), old.run
}

// refusedToll counts what the limits refused.
func (l *Line) refusedToll(room string, err error) {
	if r := (*limits.RefusedError)(nil); errors.As(err, &r) {
		l.metrics.limited.WithLabelValues(room, r.Bucket).Inc()
	}
}

// Leave gives a place in line up; leaving twice, or without a place, is no error.
// A fan who was admitted keeps the slot: booking says when a visit has ended.
func (l *Line) Leave(ctx context.Context, name string, t Token) error {
	p, err := l.verify(name, t)
	if err != nil {
		return err
	}
	r, b, err := l.room(ctx, name)
	if err != nil {
		return err
	}
	if p.run < b.view.Run {
		return ErrOldRun
	}
	reply, err := l.run(ctx, leaveScript, r.keys, p.member[:], keptGone)
	if err != nil {
		return err
	}
	if n, ok := reply.(int64); ok && n > 0 {
		l.metrics.leaves.WithLabelValues(name).Inc()
	}
	return nil
}
