package queue

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"

	"usher/admission/pass"
	"usher/queue/customer"
	"usher/queue/limits"
)

// Token is a signed place: base64url of
//
//	version 1 · flags 1 · run 4 · score 8 · member 16 · customer 16 · [binding hash 32] · room · HMAC-SHA256 32
//
// Whoever holds it is the fan. The score doubles as the issuing time; the same
// place always has the same token.
type Token string

const (
	tokenVersion  = 1
	flagBound     = 1
	flagKnown     = 2
	tokenHead     = 1 + 1 + 4 + 8 + 16 + 16
	maxTokenBytes = 320 // of text; a real one has at most 231. Longer ones are refused unread
)

type member [16]byte

// place is what a verified token says.
type place struct {
	room     string
	run      int
	score    int64
	member   member
	customer [16]byte
	known    bool // of a customer whom an integrator has named: member and customer come from that name
	bound    bool
	binding  [32]byte // SHA-256 of the binding secret, as pass.HashBinding encodes it; zero when not bound
}

func (p place) id() string { return hex.EncodeToString(p.member[:]) }

func (p place) customerID() string { return base64.RawURLEncoding.EncodeToString(p.customer[:]) }

func (p place) bindingHash() string {
	if !p.bound {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(p.binding[:])
}

// sign makes the place's token with the first secret.
func (l *Line) sign(p place) Token {
	b := make([]byte, 0, tokenHead+32+len(p.room)+sha256.Size)
	var flags byte
	if p.bound {
		flags |= flagBound
	}
	if p.known {
		flags |= flagKnown
	}
	b = append(b, tokenVersion, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(p.run))
	b = binary.BigEndian.AppendUint64(b, uint64(p.score))
	b = append(b, p.member[:]...)
	b = append(b, p.customer[:]...)
	if p.bound {
		b = append(b, p.binding[:]...)
	}
	b = append(b, p.room...)
	b = append(b, tokenMAC(l.opts.PlaceSecrets[0], b)...)
	return Token(base64.RawURLEncoding.EncodeToString(b))
}

// verify reads a token of the room; ErrBadToken for everything else. It asks no
// store, and a token seen before costs one map lookup.
func (l *Line) verify(room string, t Token) (place, error) {
	if len(t) == 0 || len(t) > maxTokenBytes {
		return place{}, ErrBadToken
	}
	p, ok := l.tokens.get(t)
	if !ok {
		if p, ok = l.parse(t); !ok {
			return place{}, ErrBadToken
		}
		l.tokens.put(t, p)
	}
	if p.room != room {
		return place{}, ErrBadToken
	}
	return p, nil
}

func (l *Line) parse(t Token) (place, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(t))
	if err != nil || len(b) < tokenHead+1+sha256.Size || b[0] != tokenVersion {
		return place{}, false
	}
	body, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	good := 0
	for _, secret := range l.opts.PlaceSecrets {
		good |= subtle.ConstantTimeCompare(mac, tokenMAC(secret, body))
	}
	if good != 1 {
		return place{}, false
	}
	p := place{
		bound: body[1]&flagBound != 0, known: body[1]&flagKnown != 0,
		run:   int(binary.BigEndian.Uint32(body[2:])),
		score: int64(binary.BigEndian.Uint64(body[6:])),
	}
	copy(p.member[:], body[14:])
	copy(p.customer[:], body[30:])
	rest := body[tokenHead:]
	if p.bound {
		if len(rest) < 32 {
			return place{}, false
		}
		copy(p.binding[:], rest)
		rest = rest[32:]
	}
	p.room = string(rest)
	return p, true
}

func tokenMAC(secret, body []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte("usher place token\x00"))
	m.Write(body)
	return m.Sum(nil)
}

// Fan is who joins.
type Fan struct {
	ID    string // the usher_fan cookie, or a bare API client's Idempotency-Key; must be hard to guess
	Bound bool   // ID came by the browser's cookie, so passes are bound to that browser
	// Known is who an integrator says the fan is. Such a fan has one place in a room,
	// from however many browsers, each with passes bound to itself by its ID.
	Known customer.Customer
	Place Token // with ID "": the place of this fan, who has nothing else to show
	// Former is a token of the place this fan had; not needed, and not believed when it
	// is another's. By it a place comes back that Redis has forgotten.
	Former Token

	Invite string       // the token of an Invite; "": none
	Toll   *limits.Toll // what a new place costs; nil: nothing
}

// identify makes the place a fan has in a room, without its score. Member and
// customer depend on no secret: a rotation must not make a fan a stranger.
func (l *Line) identify(room string, f Fan) (place, error) {
	known := f.Known != customer.Customer{}
	if f.ID == "" && !known {
		return l.verify(room, f.Place)
	}
	p := place{room: room, bound: f.Bound, known: known}
	if known {
		copy(p.member[:], digest("usher known place", room, f.Known.Issuer, f.Known.Subject))
		copy(p.customer[:], digest("usher known customer", f.Known.Issuer, f.Known.Subject))
	} else {
		copy(p.member[:], digest("usher place", room, f.ID))
		copy(p.customer[:], digest("usher customer", f.ID))
	}
	if f.Bound {
		p.binding = sha256.Sum256([]byte(binding(l.opts.PlaceSecrets[0], room, f.ID)))
	}
	return p, nil
}

// Binding is the secret that belongs to a bound place, to be given only to the
// caller who presents that fan's cookie; "" when hash is not of this fan.
func (l *Line) Binding(room, fan, hash string) string {
	for _, secret := range l.opts.PlaceSecrets {
		b := binding(secret, room, fan)
		if subtle.ConstantTimeCompare([]byte(pass.HashBinding(b)), []byte(hash)) == 1 {
			return b
		}
	}
	return ""
}

// Bond is the binding secret of the place t, told to a caller who presents one of
// these fan ids. bound is whether it has one: such a place without a binding ("") is
// not the caller's browser's, or that browser lost its cookie. ErrBadToken.
func (l *Line) Bond(room string, t Token, fans []string) (binding string, bound bool, err error) {
	p, err := l.verify(room, t)
	if err != nil || !p.bound {
		return "", false, err
	}
	for _, fan := range fans {
		if b := l.Binding(room, fan, p.bindingHash()); b != "" {
			return b, true, nil
		}
	}
	return "", true, nil
}

// Owner is which of the fan ids makes the place t; "" for none of them, and for a place
// that its id alone does not make: a known customer's, and one that was moved here and
// counts on the customer it came with.
func (l *Line) Owner(room string, t Token, fans []string) string {
	p, err := l.verify(room, t)
	if err != nil {
		return ""
	}
	for _, fan := range fans {
		if q, err := l.identify(room, Fan{ID: fan}); err == nil && q.member == p.member && q.customer == p.customer {
			return fan
		}
	}
	return ""
}

func binding(secret []byte, room, fan string) string {
	m := hmac.New(sha256.New, secret)
	writeParts(m.Write, "usher binding", room, fan)
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func digest(parts ...string) []byte {
	h := sha256.New()
	writeParts(h.Write, parts...)
	return h.Sum(nil)
}

// writeParts separates the parts by their lengths, so that no two lists of parts
// write the same bytes.
func writeParts(write func([]byte) (int, error), parts ...string) {
	for _, p := range parts {
		_, _ = write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		_, _ = write([]byte(p))
	}
}

// IsKnown reports whether t is a good token of the room, and a known customer's.
func (l *Line) IsKnown(room string, t Token) bool {
	p, err := l.verify(room, t)
	return err == nil && p.known
}

// PlaceID names the place that fan has in the room, or would have there: 32 hex digits,
// "" when fan shows nothing good. It asks no store.
func (l *Line) PlaceID(room string, fan Fan) string {
	p, err := l.identify(room, fan)
	if err != nil {
		return ""
	}
	return p.id()
}

// Holds reports whether t is a good token of the room, of whatever run. It asks
// no store.
func (l *Line) Holds(room string, t Token) bool {
	_, err := l.verify(room, t)
	return err == nil
}
