package customer

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

// The algorithms a token may be signed with, as in its header.
const (
	EdDSA = "EdDSA"
	ES256 = "ES256"
	HS256 = "HS256"
)

// minSecret is the shortest HS256 secret, in bytes (RFC 7518 §3.2).
const minSecret = 32

// maxKeys bounds what a token without a key id is held against.
const maxKeys = 16

// Key is one key and the one algorithm it serves.
type Key struct {
	id, alg string
	key     jwt.VerificationKey
}

// Secret makes an HS256 key of a shared secret. It has no id: tokens signed with it
// name none.
func Secret(secret []byte) (Key, error) {
	if len(secret) < minSecret {
		return Key{}, fmt.Errorf("customer: a secret has %d bytes, needs %d", len(secret), minSecret)
	}
	return Key{alg: HS256, key: secret}, nil
}

// ParseJWKS reads a key set (RFC 7517). Keys of other kinds, and those not for
// signatures, are left out; a set without any key left, or with a private one, is an
// error. Shared secrets ("oct") are read from a file of the operator's (own), and
// refused in what somebody publishes.
func ParseJWKS(data []byte, own bool) (Static, error) {
	var set jwkset.JWKSMarshal
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("customer: the key set is not valid JSON: %w", err)
	}
	var keys Static
	for _, m := range set.Keys {
		k, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{Private: true}, jwkset.JWKValidateOptions{})
		if err != nil || m.USE != "" && m.USE != jwkset.UseSig {
			continue
		}
		parsed := Key{id: m.KID}
		switch pub := k.Key().(type) {
		case ed25519.PublicKey:
			parsed.alg, parsed.key = EdDSA, pub
		case *ecdsa.PublicKey:
			if pub.Curve != elliptic.P256() {
				continue
			}
			parsed.alg, parsed.key = ES256, pub
		case []byte:
			if !own {
				return nil, errors.New("customer: a shared secret is published in the key set")
			}
			if len(pub) < minSecret {
				return nil, fmt.Errorf("customer: the secret %.40q of the key set has %d bytes, needs %d", m.KID, len(pub), minSecret)
			}
			parsed.alg, parsed.key = HS256, pub
		case ed25519.PrivateKey, *ecdsa.PrivateKey:
			return nil, fmt.Errorf("customer: key %.40q of the set is a private one; only its public part belongs here", m.KID)
		default:
			continue
		}
		if m.ALG != "" && string(m.ALG) != parsed.alg {
			continue // pinned to something else
		}
		keys = append(keys, parsed)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("customer: the key set has no Ed25519, P-256 or secret key for signatures")
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("customer: the key set has %d keys, at most %d are taken", len(keys), maxKeys)
	}
	return keys, nil
}

// Static are keys that do not change.
type Static []Key

// Find is of Keys.
func (s Static) Find(kid, alg string) ([]Key, error) {
	var found []Key
	for _, k := range s {
		if k.alg == alg && (kid == "" || k.id == kid) {
			found = append(found, k)
		}
	}
	return found, nil
}
