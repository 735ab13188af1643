package customer

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// AnyRoom is the audience of a token that is good in every room that trusts its issuer.
const AnyRoom = "usher"

// The bounds of a token.
const (
	MaxLife    = 24 * time.Hour
	Leeway     = 30 * time.Second // of iat and nbf
	MaxSubject = 200              // bytes
	maxBytes   = 3 << 10          // of a whole token, which must fit into a cookie; longer ones are refused unread
)

var (
	// ErrInvalid: the token must not be honoured; wraps the reason.
	ErrInvalid = errors.New("customer: the token is not valid")
	// ErrNoKeys: the keys cannot be read at the moment. Nothing is said about the token.
	ErrNoKeys = errors.New("customer: the keys cannot be read at the moment")
)

// Customer is who a token says the fan is. The zero value is nobody.
type Customer struct{ Issuer, Subject string }

// Keys find what may have signed a token: the key named kid, or all of the algorithm
// when it names none (""). Errors wrap ErrNoKeys when the keys could not be looked at.
type Keys interface {
	Find(kid, alg string) ([]Key, error)
}

// Trust is whose tokens a room takes.
type Trust struct {
	Issuer   string // iss
	Audience string // aud; "": the room's name or AnyRoom
	Keys     Keys
}

// Verify reads a token shown in a room; ErrInvalid, ErrNoKeys.
func (t Trust) Verify(room, token string, now time.Time) (Customer, error) {
	if len(token) == 0 || len(token) > maxBytes {
		return Customer{}, fmt.Errorf("%w: it has %d bytes", ErrInvalid, len(token))
	}
	if t.Issuer == "" || t.Keys == nil { // an empty issuer would be no condition at all
		return Customer{}, fmt.Errorf("%w: nobody is trusted here", ErrInvalid)
	}
	audiences := []string{t.Audience}
	if t.Audience == "" {
		audiences = []string{room, AnyRoom}
	}
	var c jwt.RegisteredClaims
	_, err := jwt.NewParser(
		jwt.WithValidMethods([]string{EdDSA, ES256, HS256}), jwt.WithIssuer(t.Issuer), jwt.WithAudience(audiences...),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(Leeway), jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	).ParseWithClaims(token, &c, t.key)
	switch {
	case errors.Is(err, ErrNoKeys):
		return Customer{}, err
	case err != nil:
		return Customer{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	case !now.Before(c.ExpiresAt.Time): // without the leeway
		return Customer{}, fmt.Errorf("%w: it has expired", ErrInvalid)
	case c.ExpiresAt.After(now.Add(MaxLife)):
		return Customer{}, fmt.Errorf("%w: it expires more than %s ahead", ErrInvalid, MaxLife)
	case c.IssuedAt == nil:
		return Customer{}, fmt.Errorf("%w: it does not say when it was issued", ErrInvalid)
	case c.Subject == "" || len(c.Subject) > MaxSubject || !utf8.ValidString(c.Subject):
		return Customer{}, fmt.Errorf("%w: its subject must have 1 to %d bytes", ErrInvalid, MaxSubject)
	}
	return Customer{Issuer: t.Issuer, Subject: c.Subject}, nil
}

// key finds what the token may be signed with; the algorithm chooses among keys and
// never how a key is used.
func (t Trust) key(token *jwt.Token) (any, error) {
	if _, asks := token.Header["crit"]; asks {
		return nil, errors.New("it needs extensions (crit) that are not known here")
	}
	kid := ""
	if named, ok := token.Header["kid"]; ok {
		if kid, ok = named.(string); !ok || kid == "" {
			return nil, errors.New("its key id is no text")
		}
	}
	keys, err := t.Keys.Find(kid, token.Method.Alg())
	if err != nil {
		return nil, err
	}
	var set jwt.VerificationKeySet
	for _, k := range keys {
		if k.alg == token.Method.Alg() { // once more: a mistake here would be everybody's identity
			set.Keys = append(set.Keys, k.key)
		}
	}
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("no %s key %.40q of this issuer is known", token.Method.Alg(), kid)
	}
	return set, nil
}
