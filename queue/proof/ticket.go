package proof

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// ticketLife is how long a wait ticket is good from its instant on: a fan without
// script must press a button in time.
const ticketLife = 10 * time.Minute

// A wait ticket is base64url of
//
//	version 1 · not before, ms 8 · owners 16 + 16 · random 8 · HMAC-SHA-256, cut to 16
//
// With one owner the digest stands there twice.
const (
	ticketVersion = 1
	ticketBody    = 1 + 8 + 16 + 16 + 8
	ticketMAC     = 16
)

// TooEarlyError: the ticket is good, but not yet.
type TooEarlyError struct {
	Wait time.Duration // > 0
}

func (e *TooEarlyError) Error() string { return fmt.Sprintf("proof: wait %s more", e.Wait) }

// Ticket lets one fan join the room without a proof once wait has passed. who are
// the one or two names by which that fan may come back.
func (i *Issuer) Ticket(room string, who []string, wait time.Duration) string {
	b := make([]byte, 0, ticketBody+ticketMAC)
	b = append(b, ticketVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(i.now().Add(wait).UnixMilli()))
	list := owners(room, who)
	for _, o := range []string{list[0], list[len(list)-1]} {
		digest, _ := hex.DecodeString(o) // hex of our own
		b = append(b, digest...)
	}
	var nonce [8]byte
	_, _ = rand.Read(nonce[:])
	b = append(b, nonce[:]...)
	b = append(b, ticketSum(i.keys[0], b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

func ticketSum(key, body []byte) []byte {
	return sum(key, "usher wait ticket\x00"+string(body))[:ticketMAC]
}

// Redeem checks a wait ticket that who must have got in the room. It asks
// no store: the caller takes the mark. ErrInvalid, *TooEarlyError.
func (i *Issuer) Redeem(room, who, text string) (Paid, error) {
	if len(text) > 2*(ticketBody+ticketMAC) {
		return Paid{}, ErrInvalid
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != ticketBody+ticketMAC || b[0] != ticketVersion {
		return Paid{}, ErrInvalid
	}
	body, mac := b[:ticketBody], b[ticketBody:]
	good := 0
	for _, key := range i.keys {
		good |= subtle.ConstantTimeCompare(mac, ticketSum(key, body))
	}
	said := []string{hex.EncodeToString(body[9:25]), hex.EncodeToString(body[25:41])}
	if good != 1 || !slices.Contains(said, whose(room, who)) {
		return Paid{}, ErrInvalid
	}
	from := time.UnixMilli(int64(binary.BigEndian.Uint64(body[1:])))
	now := i.now()
	if wait := from.Sub(now); wait > 0 {
		return Paid{}, &TooEarlyError{Wait: wait}
	}
	life := from.Add(ticketLife).Sub(now)
	if life <= 0 {
		return Paid{}, ErrInvalid
	}
	return Paid{Mark: "w" + hex.EncodeToString(mac), Life: life + time.Minute}, nil
}
