// Package pass mints and verifies the admission pass: the signed token an
// admitted fan carries from the edge to the booking API. It is the one contract
// between the two and does no I/O.
//
// A pass is a JWT (RFC 7519) signed with Ed25519 (`alg` EdDSA, RFC 8037) and
// bears: iss, aud, sub (the customer id), jti (one pass, one session), iat, nbf,
// exp, room, plc (the place's id), run, and cnf.bh when it is bound to the
// browser that joined: the base64url SHA-256 of a secret that browser keeps.
//
// Decisions. EdDSA and not a shared secret, so that an integrator verifies
// offline and can mint nothing. Signing is deterministic, so that the same
// admission asked twice is the same pass, byte for byte. The default JWT parser
// accepts a token without an expiry and for another audience: every check is
// switched on by name in NewVerifier.
package pass

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Issuer and Audience are the values of iss and aud.
const (
	Issuer   = "usher"
	Audience = "usher-booking"
)

// Leeway forgives this much difference between the edge's and booking's clocks.
const Leeway = 5 * time.Second

// Life is how long a pass may be exchanged for a session, counted from the
// admission. LongestSession is what booking bounds a session by, counted from the
// exchange. SlotLease covers both and is how long an edge keeps the slot: exp is
// rounded up to a whole second, and a pass is still taken within the Leeway after
// it, so a session may begin that much later than Life says.
const (
	Life           = 2 * time.Minute
	LongestSession = 40 * time.Minute
	SlotLease      = Life + time.Second + Leeway + LongestSession
)

// maxBytes refuses an absurd token before any parsing; a real pass has about 500.
const maxBytes = 4096

// ErrInvalid is returned for every pass that must not be honoured, wrapping the
// reason; ErrExpired additionally marks one that was good before.
var (
	ErrInvalid = errors.New("pass: invalid")
	ErrExpired = fmt.Errorf("%w: expired", ErrInvalid)
	// ErrNoKeys is what a KeySource wraps when it could not look: nothing is said
	// about the pass then, and its bearer may try again.
	ErrNoKeys = errors.New("pass: the keys cannot be read at the moment")
)

// Claims are what a pass says.
type Claims struct {
	ID          string    // jti
	Room        string    // room
	PlaceID     string    // plc
	Customer    string    // sub
	BindingHash string    // cnf.bh; "" when the pass is not bound
	Run         int       // run
	IssuedAt    time.Time // iat and nbf, whole seconds
	ExpiresAt   time.Time // exp, whole seconds
}

type confirmation struct {
	BindingHash string `json:"bh"`
}

type wire struct {
	jwt.RegisteredClaims
	Room         string        `json:"room"`
	PlaceID      string        `json:"plc"`
	Run          int           `json:"run"`
	Confirmation *confirmation `json:"cnf,omitempty"`
}

// Mint signs the claims with k. The same claims and key give the same token.
func Mint(k Key, c Claims) (string, error) {
	w := wire{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: Issuer, Audience: jwt.ClaimStrings{Audience}, Subject: c.Customer, ID: c.ID,
			IssuedAt: jwt.NewNumericDate(c.IssuedAt), NotBefore: jwt.NewNumericDate(c.IssuedAt),
			ExpiresAt: jwt.NewNumericDate(c.ExpiresAt),
		},
		Room: c.Room, PlaceID: c.PlaceID, Run: c.Run,
	}
	if c.BindingHash != "" {
		w.Confirmation = &confirmation{BindingHash: c.BindingHash}
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, w)
	t.Header["kid"] = k.ID
	s, err := t.SignedString(k.Private)
	if err != nil {
		return "", fmt.Errorf("pass: sign: %w", err)
	}
	return s, nil
}

// KeySource finds a public key by its id (`kid`); an error when there is none.
type KeySource func(kid string) (ed25519.PublicKey, error)

// RingSource is the KeySource of a ring at hand; get is asked each time, so a
// reloaded ring counts at once.
func RingSource(get func() Ring, now func() time.Time) KeySource {
	return func(kid string) (ed25519.PublicKey, error) {
		if k, ok := get().Public(kid, now()); ok {
			return k, nil
		}
		return nil, fmt.Errorf("no key %.20q", kid)
	}
}

// Verifier checks passes; it is safe for concurrent use.
type Verifier struct {
	keys   KeySource
	parser *jwt.Parser
}

// NewVerifier verifies with keys by the clock now (nil: the machine's).
func NewVerifier(keys KeySource, now func() time.Time) *Verifier {
	if now == nil {
		now = time.Now
	}
	return &Verifier{keys: keys, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithIssuer(Issuer), jwt.WithAudience(Audience),
		jwt.WithExpirationRequired(), jwt.WithNotBeforeRequired(), jwt.WithIssuedAt(),
		jwt.WithStrictDecoding(), jwt.WithLeeway(Leeway), jwt.WithTimeFunc(now),
	)}
}

// Verify returns what a good pass says; ErrExpired or ErrInvalid otherwise, and
// ErrNoKeys when it cannot be told.
func (v *Verifier) Verify(token string) (Claims, error) {
	if len(token) > maxBytes {
		return Claims{}, fmt.Errorf("%w: %d bytes", ErrInvalid, len(token))
	}
	var w wire
	_, err := v.parser.ParseWithClaims(token, &w, func(t *jwt.Token) (any, error) {
		kid, ok := t.Header["kid"].(string)
		if !ok || kid == "" {
			return nil, errors.New("no kid")
		}
		return v.keys(kid)
	})
	if err != nil {
		// Only a token whose signature held is called expired: golang-jwt checks that first.
		if errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenSignatureInvalid) {
			return Claims{}, ErrExpired
		}
		if errors.Is(err, ErrNoKeys) {
			return Claims{}, err
		}
		return Claims{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if w.ID == "" || w.Room == "" || w.PlaceID == "" || w.Subject == "" {
		return Claims{}, fmt.Errorf("%w: a claim is missing", ErrInvalid)
	}
	c := Claims{
		ID: w.ID, Room: w.Room, PlaceID: w.PlaceID, Customer: w.Subject, Run: w.Run,
		IssuedAt: w.IssuedAt.UTC(), ExpiresAt: w.ExpiresAt.UTC(),
	}
	if w.Confirmation != nil {
		if c.BindingHash = w.Confirmation.BindingHash; c.BindingHash == "" {
			return Claims{}, fmt.Errorf("%w: cnf of an unknown kind", ErrInvalid)
		}
	}
	return c, nil
}

// HashBinding is what cnf.bh holds for a binding secret.
func HashBinding(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Bound reports whether secret is the one the pass is bound to; an unbound pass
// is satisfied by anything.
func (c Claims) Bound(secret string) bool {
	return c.BindingHash == "" ||
		subtle.ConstantTimeCompare([]byte(c.BindingHash), []byte(HashBinding(secret))) == 1
}
