package queue

import (
	"context"
	"fmt"
	"time"

	"usher/admission/pass"
)

// Admission is a granted slot: everything a pass says. The same slot always gives
// the same Admission, until the pass has expired and is renewed or its slot freed.
type Admission struct {
	Room, PlaceID string
	JTI           string // one pass, one session; a renewed pass keeps it
	Customer      string // the fan across rooms and passes, not the fan's cookie
	BindingHash   string // "" when the place is not bound
	Run           int
	GrantedAt     time.Time
	ExpiresAt     time.Time // of the pass, whole seconds
	First         bool      // this call admitted; false when the slot was there
}

// Claims are what the pass of this admission says.
func (a Admission) Claims() pass.Claims {
	return pass.Claims{
		ID: a.JTI, Room: a.Room, PlaceID: a.PlaceID, Customer: a.Customer, BindingHash: a.BindingHash, Run: a.Run,
		IssuedAt: a.GrantedAt.Truncate(time.Second), ExpiresAt: a.ExpiresAt,
	}
}

// Claim admits a called fan when there is a free slot, it is the rate's turn and
// nobody earlier stands by; asked again it answers the same admission. Otherwise
// *StandByError (the window has stopped), ErrNotCalledYet, ErrExpired,
// ErrRevoked, ErrRoomPaused (standing by from now on), ErrRoomClosed, ErrOldRun, ErrBadToken,
// ErrRecovering, ErrUnknownRoom, ErrStale. Memory never answers a claim.
func (l *Line) Claim(ctx context.Context, name string, t Token) (Admission, error) {
	p, err := l.verify(name, t)
	if err != nil {
		return Admission{}, err
	}
	r, b, err := l.room(ctx, name)
	if err != nil {
		return Admission{}, err
	}
	if r.revoked.Load().place(p) {
		return Admission{}, l.turnAway(ctx, r, p)
	}
	reply, err := l.runTogether(ctx, r, claimScript, r.keys, p.member[:], p.run, micros(l.opts.PassLife),
		micros(l.opts.SlotLease), micros(l.opts.ReportTTL), maxRenewals,
		micros(l.opts.ClaimWindow), micros(inviteAhead), l.witness(r))
	if err != nil {
		return Admission{}, err
	}
	switch text(reply, 0) {
	case "admitted", "standby", "paused": // the place was called, so the watermark is at least here
		// … but not by a score of before the draw, which would hide all drawn ones below it.
		if now := b.current(p); !b.undecided() {
			r.passed(now.score)
		}
	}
	switch code := text(reply, 0); code {
	case "admitted":
		p.countOn(text(reply, 7)) // the token may be of before the place moved here
		a := Admission{
			Room: name, PlaceID: p.id(), JTI: text(reply, 1), Customer: p.customerID(), BindingHash: p.bindingHash(),
			Run: p.run, GrantedAt: instant(number(reply, 2)), ExpiresAt: instant(number(reply, 3)),
			First: number(reply, 4) == 1,
		}
		r.memory.remember(number(reply, 5), number(reply, 6))
		if a.First {
			l.metrics.admissions.WithLabelValues(name).Inc()
		}
		return a, nil
	case "standby":
		if number(reply, 2) == 1 {
			l.metrics.standbys.WithLabelValues(name).Inc()
		}
		wait := time.Duration(number(reply, 1)) * time.Microsecond
		return Admission{}, &StandByError{RetryAfter: min(max(wait, 250*time.Millisecond), 10*time.Second)}
	case "unknown", "expired":
		// Before a place is said to have ended: has it been forgotten?
		back, err := l.restore(ctx, r, b, p)
		switch {
		case err != nil:
			return Admission{}, err
		case back.code == "back":
			return Admission{}, ErrRecovering
		}
		return Admission{}, claimError(code)
	default:
		return Admission{}, claimError(code)
	}
}

func claimError(code string) error {
	switch code {
	case "unknown":
		return ErrUnknownRoom
	case "oldrun":
		return ErrOldRun
	case "closed":
		return ErrRoomClosed
	case "paused":
		return ErrRoomPaused
	case "recovering":
		return ErrRecovering
	case "wait":
		return ErrNotCalledYet
	case "expired":
		return ErrExpired
	}
	return fmt.Errorf("queue: claim: unexpected reply %q", code)
}
