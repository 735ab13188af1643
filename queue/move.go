package queue

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// How long moves are remembered, and how many.
const (
	MoveLife     = 10 * time.Minute    // of a code for one move
	KeptMoveLife = 30 * 24 * time.Hour // of a kept one; a room's end or reset comes before
	movedMemory  = 7 * 24 * time.Hour  // of what was moved: the old browser is told so
	keptMoves    = 100_000             // fields; a move takes up to four
	movedAway    = "o:"                // field of a place that was moved away (lua/movecode.lua)
	movedHere    = "c:"                // … and of one that was moved here
)

// MoveCode is a secret by which whoever has it takes a place over.
type MoveCode struct {
	Code    string // ten letters and digits, as XXXXX-XXXXX
	Expires time.Time
	Keep    bool // good for any number of moves
}

// codeAlphabet is Crockford's base32: nothing looks like something else.
const codeAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

const codeLength = 10 // 50 random bits

func newCode() string {
	var b [codeLength]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	for i := range b {
		b[i] = codeAlphabet[b[i]&31]
	}
	return string(b[:5]) + "-" + string(b[5:])
}

// readCode undoes what people do when they copy a code; "" when it is none.
func readCode(text string) string {
	if len(text) > 64 {
		return ""
	}
	var b strings.Builder
	for _, c := range strings.ToUpper(text) {
		switch c {
		case ' ', '-', '\t', '\r', '\n':
			continue
		case 'O':
			c = '0'
		case 'I', 'L':
			c = '1'
		}
		if !strings.ContainsRune(codeAlphabet, c) {
			return ""
		}
		b.WriteRune(c)
	}
	if b.Len() != codeLength {
		return ""
	}
	return b.String()
}

// codeDigest is what the line keeps of a code: whoever reads Redis, or a backup of it,
// can move no place.
func codeDigest(secret []byte, room, code string) []byte {
	m := hmac.New(sha256.New, secret)
	writeParts(m.Write, "usher move", room, strings.ReplaceAll(code, "-", ""))
	return m.Sum(nil)[:16]
}

// NewMoveCode makes a code by which the place of t, waiting or called, moves to another
// browser. It replaces the place's last code of its kind. keep makes one that serves
// again and again, for whose browser keeps nothing. Errors: ErrAdmitted, ErrExpired,
// ErrRevoked, ErrRoomClosed, ErrOldRun, ErrBadToken, ErrUnknownRoom, ErrStale.
func (l *Line) NewMoveCode(ctx context.Context, name string, t Token, keep bool) (MoveCode, error) {
	p, err := l.verify(name, t)
	if err != nil {
		return MoveCode{}, err
	}
	r, b, err := l.room(ctx, name)
	if err != nil {
		return MoveCode{}, err
	}
	if r.revoked.Load().place(p) {
		return MoveCode{}, l.turnAway(ctx, r, p)
	}
	life, code := MoveLife, newCode()
	if keep {
		life = KeptMoveLife
	}
	for again := range 2 {
		reply, err := l.runList(ctx, moveCodeScript, r.keys, p.member[:], p.run, codeDigest(l.opts.PlaceSecrets[0], name, code),
			micros(life), keep, p.known, hex.EncodeToString(p.customer[:]), keptMoves, l.witness(r))
		if err != nil {
			return MoveCode{}, err
		}
		switch what := text(reply, 0); {
		case what == "ok":
			return MoveCode{Code: code, Expires: instant(number(reply, 1)), Keep: keep}, nil
		case what == "expired" && again == 0: // or has it been forgotten?
			if back, err := l.restore(ctx, r, b, p); err != nil {
				return MoveCode{}, err
			} else if back.code != "ended" {
				continue
			}
			return MoveCode{}, ErrExpired
		default:
			return MoveCode{}, moveError(what)
		}
	}
	return MoveCode{}, ErrExpired
}

// Move gives the place behind a code to the fan: same score, same call, counting on
// the same customer. The browser of before loses it; a place that the fan had in the
// room is given up. The same fan may ask again; anybody else's turn is over, unless
// the code is a kept one; by that one the pass of an
// admitted place is had again, too. Of Fan ID and Bound count, or Place. A known customer's
// place stays theirs on all their devices, and the fan becomes one of these. Errors:
// ErrMoveCode, ErrAdmitted, ErrExpired, ErrRevoked, ErrRecovering, ErrRoomClosed,
// ErrBadToken (Fan.Place), ErrUnknownRoom, and ErrStale, also for the seconds of a drawing.
func (l *Line) Move(ctx context.Context, name string, fan Fan, code string) (View, error) {
	if code = readCode(code); code == "" {
		return View{}, ErrMoveCode
	}
	r, b, err := l.room(ctx, name)
	if err != nil {
		return View{}, err
	}
	p, err := l.identify(name, fan)
	if err != nil {
		return View{}, err
	}
	if r.revoked.Load().place(p) {
		return View{}, fmt.Errorf("%w: place %s", ErrRevoked, p.id())
	}
	args := []any{p.member[:], keptGone, micros(movedMemory), l.witness(r)}
	for _, secret := range l.opts.PlaceSecrets {
		args = append(args, codeDigest(secret, name, code))
	}
	reply, err := l.runList(ctx, moveScript, r.keys, args...)
	if err != nil {
		return View{}, err
	}
	what := text(reply, 0)
	if len(reply) == 1 { // a refusal: no place stands in it
		return View{}, moveError(what)
	}
	p.score, p.run, p.known = number(reply, 1), int(number(reply, 3)), number(reply, 5) == 1
	copy(p.member[:], text(reply, 7))
	p.countOn(text(reply, 6))
	r.memory.remember(number(reply, 9), number(reply, 10))
	if r.revoked.Load().place(p) { // since the code was made
		return View{}, l.turnAway(ctx, r, p)
	}
	st := standing{status: Status(what), score: p.score, rank: int(number(reply, 2)), due: number(reply, 4)}
	if st.status != Waiting && !b.undecided() {
		r.passed(p.score)
	}
	if st.status == Waiting && b.view.Recovering {
		st.rank = r.told(p, 0)
	}
	l.metrics.moves.WithLabelValues(name).Inc()
	v := l.view(b, p, st)
	v.Token, v.Kept = l.sign(p), number(reply, 8) == 1
	return v, nil
}

// countOn makes the place count on the customer it came with; "" changes nothing.
func (p *place) countOn(customer string) {
	if raw, err := hex.DecodeString(customer); err == nil && len(raw) == len(p.customer) {
		copy(p.customer[:], raw)
	}
}

// movedBefore reads the mark of a place that was moved away (lua/movecode.lua) and tells
// whether it is about the place of this score: a later one, taken since, has a higher.
func movedBefore(mark string, score int64) bool {
	was := parseScore(afterBar(mark))
	return mark != "" && was >= score && alike(was, score)
}

// afterBar is a field's value behind the end of its life.
func afterBar(field string) string {
	_, value, _ := strings.Cut(field, "|")
	return value
}

func moveError(code string) error {
	switch code {
	case "invalid":
		return ErrMoveCode
	case "admitted", "inside":
		return ErrAdmitted
	case "drawing":
		return fmt.Errorf("%w: the order is being drawn", ErrStale)
	case "full":
		return fmt.Errorf("%w: too many codes are out", ErrStale)
	}
	return claimError(code)
}
