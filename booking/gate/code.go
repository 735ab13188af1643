package gate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// ErrNoTicket: the text is no ticket of ours, or somebody changed it.
var ErrNoTicket = errors.New("gate: this is no ticket of ours")

// Ticket is what a ticket's code says.
type Ticket struct {
	ID         uuid.UUID
	ShowtimeID string
	Seat       string // its code
}

// The code of a ticket is "UT1" and, in base32 without padding (RFC 4648), so that a QR
// code takes its alphanumeric mode:
//
//	key id 4 ‖ ticket id 16 ‖ length of showtime id 1 ‖ showtime id ‖ seat code ‖ signature 64
//
// signed with Ed25519 over signedAs and all before the signature.
const (
	codePrefix = "UT1"
	signedAs   = "usher ticket 1\n"
	kidBytes   = 4
	longest    = 400 // letters; ours have some 200
)

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// Signer makes and reads the codes of tickets. The first secret signs, all verify.
type Signer struct {
	keys []key
}

type key struct {
	id      []byte
	private ed25519.PrivateKey
}

// minSecret is in bytes.
const minSecret = 32

// NewSigner derives a key of each secret (HKDF-SHA256). A secret must stay as long as
// tickets of it are to be let in: a new one goes in front of it.
func NewSigner(secrets [][]byte) (*Signer, error) {
	if len(secrets) == 0 {
		return nil, errors.New("gate: a secret is needed")
	}
	s := &Signer{}
	for i, secret := range secrets {
		if len(secret) < minSecret {
			return nil, fmt.Errorf("gate: secret %d is shorter than %d bytes", i+1, minSecret)
		}
		seed, err := hkdf.Key(sha256.New, secret, nil, "usher ticket 1", ed25519.SeedSize)
		if err != nil {
			return nil, fmt.Errorf("gate: key: %w", err)
		}
		k := key{private: ed25519.NewKeyFromSeed(seed)}
		sum := sha256.Sum256(k.public())
		k.id = sum[:kidBytes]
		s.keys = append(s.keys, k)
	}
	return s, nil
}

func (k key) public() ed25519.PublicKey {
	return k.private.Public().(ed25519.PublicKey) //nolint:errcheck,forcetypeassert // it is one
}

// Code is what the ticket's QR code says.
func (s *Signer) Code(t Ticket) string {
	k := s.keys[0]
	var b bytes.Buffer
	b.Write(k.id)
	b.Write(t.ID[:])
	b.WriteByte(byte(len(t.ShowtimeID)))
	b.WriteString(t.ShowtimeID)
	b.WriteString(t.Seat)
	b.Write(ed25519.Sign(k.private, append([]byte(signedAs), b.Bytes()...)))
	return codePrefix + letters.EncodeToString(b.Bytes())
}

// Read verifies a code; ErrNoTicket for anything that this signer's keys have not made.
func (s *Signer) Read(code string) (Ticket, error) {
	rest, ok := strings.CutPrefix(code, codePrefix)
	if !ok || len(code) > longest {
		return Ticket{}, ErrNoTicket
	}
	data, err := letters.DecodeString(rest)
	if err != nil || len(data) < kidBytes+16+1+ed25519.SignatureSize || letters.EncodeToString(data) != rest {
		return Ticket{}, ErrNoTicket
	}
	body, sig := data[:len(data)-ed25519.SignatureSize], data[len(data)-ed25519.SignatureSize:]
	for _, k := range s.keys {
		if !bytes.Equal(k.id, body[:kidBytes]) || !ed25519.Verify(k.public(), append([]byte(signedAs), body...), sig) {
			continue
		}
		t := Ticket{ID: uuid.UUID(body[kidBytes : kidBytes+16])}
		n, text := int(body[kidBytes+16]), string(body[kidBytes+17:])
		if n > len(text) {
			return Ticket{}, ErrNoTicket
		}
		t.ShowtimeID, t.Seat = text[:n], text[n:]
		return t, nil
	}
	return Ticket{}, ErrNoTicket
}

type jwk struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	Kid string `json:"kid"` // hex of the key id in a code
	Use string `json:"use"`
	Alg string `json:"alg"`
}

// Keys are the public keys for scanners, as a JWK set (RFC 8037).
func (s *Signer) Keys() []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{}
	for _, k := range s.keys {
		set.Keys = append(set.Keys, jwk{
			Kty: "OKP", Crv: "Ed25519", X: base64.RawURLEncoding.EncodeToString(k.public()), Kid: hex.EncodeToString(k.id), Use: "sig", Alg: "EdDSA",
		})
	}
	data, _ := json.Marshal(set) // strings alone
	return data
}
