package queue

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// What an invite is refused with. A place the fan has already is kept.
var (
	ErrInviteInvalid = errors.New("queue: the invite is not valid for this room")
	ErrInviteExpired = errors.New("queue: the invite has expired")
	ErrInviteUsedUp  = errors.New("queue: the invite's places are taken")
)

// The bounds of an invite.
const (
	MaxInviteQuota = 10_000
	MaxInviteLife  = 366 * 24 * time.Hour
)

// InviteKind is where an invite leads.
type InviteKind string

// The kinds of invites.
const (
	Bypass   InviteKind = "bypass"   // ahead of the line
	Priority InviteKind = "priority" // into the priority line, which has a share of the calls
)

// inviteKinds are the kinds by the first byte of a token.
var inviteKinds = map[byte]InviteKind{1: Bypass, 2: Priority}

// Invite is a number of places ahead of the line, or in the priority line, for whoever
// brings its token: inside the same cap and rate, in the order in which they come. As
// text it is base64url of
//
//	kind 1 · quota 4 · expires 8 (s) · id 16 · room · HMAC-SHA256 32
//
// signed with a key made of the place secret, so that it is good as long as that secret
// is among the edge's, and that no place token is an invite.
type Invite struct {
	ID      string // 32 hex digits
	Room    string
	Kind    InviteKind // Bypass or Priority
	Quota   int
	Expires time.Time // whole seconds
}

const (
	inviteHead = 1 + 4 + 8 + 16
	inviteMost = (inviteHead+63+sha256.Size)*4/3 + 2 // of text
)

// NewInvite makes an invite and its token. secret is the edge's first place secret.
func NewInvite(secret []byte, room string, kind InviteKind, quota int, expires time.Time) (Invite, string) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails since Go 1.24
	b := append(make([]byte, 0, inviteHead+len(room)+sha256.Size), 1)
	if kind == Priority {
		b[0] = 2
	}
	b = binary.BigEndian.AppendUint32(b, uint32(quota))
	b = binary.BigEndian.AppendUint64(b, uint64(expires.Unix()))
	b = append(append(b, id[:]...), room...)
	i := Invite{ID: hex.EncodeToString(id[:]), Room: room, Kind: inviteKinds[b[0]], Quota: quota, Expires: time.Unix(expires.Unix(), 0).UTC()}
	return i, base64.RawURLEncoding.EncodeToString(append(b, inviteMAC(secret, b)...))
}

// readInvite verifies a token for a room; ErrInviteInvalid, ErrInviteExpired.
func (l *Line) readInvite(room, token string, now time.Time) (Invite, error) {
	if len(token) > inviteMost {
		return Invite{}, ErrInviteInvalid
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < inviteHead+1+sha256.Size || inviteKinds[b[0]] == "" {
		return Invite{}, ErrInviteInvalid
	}
	body, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	good := 0
	for _, secret := range l.opts.PlaceSecrets {
		good |= subtle.ConstantTimeCompare(mac, inviteMAC(secret, body))
	}
	i := Invite{
		Kind: inviteKinds[b[0]], Quota: int(binary.BigEndian.Uint32(body[1:])), Expires: time.Unix(int64(binary.BigEndian.Uint64(body[5:])), 0).UTC(),
		ID: hex.EncodeToString(body[13:inviteHead]), Room: string(body[inviteHead:]),
	}
	switch {
	case good != 1 || i.Room != room:
		return Invite{}, ErrInviteInvalid
	case !now.Before(i.Expires):
		return Invite{}, ErrInviteExpired
	}
	return i, nil
}

func inviteMAC(secret, body []byte) []byte {
	return tokenMAC(digest("usher invite", string(secret)), body)
}
