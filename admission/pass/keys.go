package pass

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"time"
)

// Key is one signing key and the time it is used. It is published from the
// moment it is in the ring until RetireAt, so that verifiers know it before the
// first pass bears it and until the last pass that bears it has expired.
type Key struct {
	ID          string
	Private     ed25519.PrivateKey
	PublishedAt time.Time // when it came into the ring; zero: not known
	ActiveFrom  time.Time
	RetireAt    time.Time // zero: not retired
}

// Ring is a set of keys; it is immutable, a change returns a new one.
type Ring struct{ keys []Key } // by ActiveFrom, oldest first

// ErrNoKey is returned when no key of the ring is active.
var ErrNoKey = errors.New("pass: no active signing key; make one with `usher keys new`")

// NewRing makes a ring with one key, active from now.
func NewRing(now time.Time) (Ring, error) {
	k, err := newKey(now, now)
	if err != nil {
		return Ring{}, err
	}
	return Ring{keys: []Key{k}}, nil
}

// Add returns a ring with one key more, published from now and signing from activeFrom.
func (r Ring) Add(now, activeFrom time.Time) (Ring, error) {
	k, err := newKey(now, activeFrom)
	if err != nil {
		return Ring{}, err
	}
	return Ring{keys: sorted(append(append([]Key(nil), r.keys...), k))}, nil
}

// Rotate lets the newest key that does not sign yet, or else a new one, take
// over once it has been published for publishFirst: at once when it has been,
// never later than it would have by itself. Until then the old key signs. The
// others retire overlap after the turn, which must exceed a pass' life. Asked
// again before the turn it changes nothing.
func (r Ring) Rotate(now time.Time, publishFirst, overlap time.Duration) (Ring, error) {
	keys := append([]Key(nil), r.keys...)
	if len(keys) == 0 || !keys[len(keys)-1].ActiveFrom.After(now) {
		k, err := newKey(now, now.Add(publishFirst))
		if err != nil {
			return Ring{}, err
		}
		keys = append(keys, k)
	}
	last := len(keys) - 1
	turn := keys[last].turn(now, publishFirst)
	keys[last].ActiveFrom = turn
	live := keys[:0]
	for i, k := range keys {
		if i != last && k.RetireAt.IsZero() {
			k.RetireAt = turn.Add(overlap)
		}
		if k.RetireAt.IsZero() || k.RetireAt.After(now) {
			live = append(live, k)
		}
	}
	return Ring{keys: sorted(live)}, nil
}

// turn is when the key may sign for a rotation asked for at now.
func (k Key) turn(now time.Time, publishFirst time.Duration) time.Time {
	published := k.PublishedAt
	if published.IsZero() || published.After(now) { // written before the time was noted
		published = now
	}
	turn := published.Add(publishFirst)
	if turn.Before(now) {
		turn = now
	}
	if k.ActiveFrom.After(now) && k.ActiveFrom.Before(turn) {
		turn = k.ActiveFrom
	}
	return turn
}

// Signer is the key that signs at now: the youngest that is active.
func (r Ring) Signer(now time.Time) (Key, error) {
	for i := len(r.keys) - 1; i >= 0; i-- {
		k := r.keys[i]
		if !k.ActiveFrom.After(now) && (k.RetireAt.IsZero() || k.RetireAt.After(now)) {
			return k, nil
		}
	}
	return Key{}, ErrNoKey
}

// Keys lists the ring, oldest first.
func (r Ring) Keys() []Key { return append([]Key(nil), r.keys...) }

// Public is the published key with that id at now; ok is false for one unknown,
// or retired.
func (r Ring) Public(id string, now time.Time) (key ed25519.PublicKey, ok bool) {
	for _, k := range r.keys {
		if k.ID == id && (k.RetireAt.IsZero() || k.RetireAt.After(now)) {
			return publicOf(k), true
		}
	}
	return nil, false
}

// JWKS is the published keys as a JSON Web Key Set (RFC 7517, RFC 8037).
func (r Ring) JWKS(now time.Time) ([]byte, error) {
	type jwk struct {
		KeyType string `json:"kty"`
		Curve   string `json:"crv"`
		X       string `json:"x"`
		KeyID   string `json:"kid"`
		Use     string `json:"use"`
		Alg     string `json:"alg"`
	}
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	for _, k := range r.keys {
		if !k.RetireAt.IsZero() && !k.RetireAt.After(now) {
			continue
		}
		x := base64.RawURLEncoding.EncodeToString(publicOf(k))
		set.Keys = append(set.Keys, jwk{KeyType: "OKP", Curve: "Ed25519", X: x, KeyID: k.ID, Use: "sig", Alg: "EdDSA"})
	}
	return json.Marshal(set)
}

type storedKey struct {
	ID          string     `json:"kid"`
	Seed        string     `json:"seed"`
	PublishedAt *time.Time `json:"publishedAt,omitempty"`
	ActiveFrom  time.Time  `json:"activeFrom"`
	RetireAt    *time.Time `json:"retireAt,omitempty"`
}

type storedRing struct {
	Keys []storedKey `json:"keys"`
}

// MarshalJSON writes the ring with its secrets, for a file only its owner reads.
func (r Ring) MarshalJSON() ([]byte, error) {
	doc := storedRing{Keys: []storedKey{}}
	for _, k := range r.keys {
		s := storedKey{ID: k.ID, Seed: base64.RawURLEncoding.EncodeToString(k.Private.Seed()), ActiveFrom: k.ActiveFrom}
		if !k.RetireAt.IsZero() {
			at := k.RetireAt
			s.RetireAt = &at
		}
		if !k.PublishedAt.IsZero() {
			at := k.PublishedAt
			s.PublishedAt = &at
		}
		doc.Keys = append(doc.Keys, s)
	}
	return json.MarshalIndent(doc, "", "  ")
}

// ParseRing reads what MarshalJSON wrote; it refuses a ring with a broken or a
// repeated key whole.
func ParseRing(data []byte) (Ring, error) {
	var doc storedRing
	if err := json.Unmarshal(data, &doc); err != nil {
		return Ring{}, fmt.Errorf("pass: keys: %w", err)
	}
	seen := map[string]bool{}
	var keys []Key
	for i, s := range doc.Keys {
		seed, err := base64.RawURLEncoding.DecodeString(s.Seed)
		if err != nil || len(seed) != ed25519.SeedSize {
			return Ring{}, fmt.Errorf("pass: key %d: the seed is not %d bytes of base64url", i+1, ed25519.SeedSize)
		}
		if s.ID == "" || seen[s.ID] {
			return Ring{}, fmt.Errorf("pass: key %d: kid %q is empty or used twice", i+1, s.ID)
		}
		seen[s.ID] = true
		k := Key{ID: s.ID, Private: ed25519.NewKeyFromSeed(seed), ActiveFrom: s.ActiveFrom}
		if s.RetireAt != nil {
			k.RetireAt = *s.RetireAt
		}
		if s.PublishedAt != nil {
			k.PublishedAt = *s.PublishedAt
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return Ring{}, ErrNoKey
	}
	return Ring{keys: sorted(keys)}, nil
}

func newKey(now, activeFrom time.Time) (Key, error) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("pass: %w", err)
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails since Go 1.24
	return Key{
		ID: base64.RawURLEncoding.EncodeToString(id[:]), Private: priv,
		PublishedAt: now.UTC().Truncate(time.Second), ActiveFrom: activeFrom.UTC().Truncate(time.Second),
	}, nil
}

func publicOf(k Key) ed25519.PublicKey {
	pub, ok := k.Private.Public().(ed25519.PublicKey)
	if !ok {
		panic("pass: an ed25519 private key without a public one")
	}
	return pub
}

func sorted(keys []Key) []Key {
	sort.SliceStable(keys, func(i, j int) bool { return keys[i].ActiveFrom.Before(keys[j].ActiveFrom) })
	return keys
}
