package pass_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"usher/admission/pass"
)

var t0 = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

func ring(t *testing.T) pass.Ring {
	t.Helper()
	r, err := pass.NewRing(t0.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verifier(r pass.Ring, now time.Time) *pass.Verifier {
	clock := func() time.Time { return now }
	return pass.NewVerifier(pass.RingSource(func() pass.Ring { return r }, clock), clock)
}

func claims() pass.Claims {
	return pass.Claims{
		ID: "j1", Room: "cinema", PlaceID: "aa", Customer: "fan-1", Run: 1,
		BindingHash: pass.HashBinding("secret"), IssuedAt: t0, ExpiresAt: t0.Add(2 * time.Minute),
	}
}

func mint(t *testing.T, r pass.Ring, c pass.Claims) string {
	t.Helper()
	k, err := r.Signer(t0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := pass.Mint(k, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAPassSaysWhatWasMintedAndTwiceTheSame(t *testing.T) {
	t.Parallel()
	r := ring(t)
	a, b := mint(t, r, claims()), mint(t, r, claims())
	if a != b {
		t.Error("the same admission gave two different passes")
	}
	got, err := verifier(r, t0.Add(time.Minute)).Verify(a)
	if err != nil {
		t.Fatal(err)
	}
	if got != claims() {
		t.Errorf("got %+v\nwant %+v", got, claims())
	}
	if !got.Bound("secret") || got.Bound("other") || got.Bound("") {
		t.Error("the binding is not what decides")
	}
}

// Every one of these was accepted by some verifier in public.
func TestBadPassesAreRefused(t *testing.T) {
	t.Parallel()
	r := ring(t)
	good := mint(t, r, claims())
	parts := strings.Split(good, ".")
	foreign := ring(t)
	key, err := r.Signer(t0)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(m jwt.MapClaims, method jwt.SigningMethod, secret any) string {
		tok := jwt.NewWithClaims(method, m)
		tok.Header["kid"] = key.ID
		s, err := tok.SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	full := func() jwt.MapClaims {
		return jwt.MapClaims{
			"iss": "usher", "aud": "usher-booking", "sub": "f", "jti": "j", "room": "cinema", "plc": "aa",
			"iat": t0.Unix(), "nbf": t0.Unix(), "exp": t0.Add(time.Minute).Unix(),
		}
	}
	without := func(k string) jwt.MapClaims { m := full(); delete(m, k); return m }
	with := func(k string, v any) jwt.MapClaims { m := full(); m[k] = v; return m }
	pub, _ := r.Public(key.ID, t0)
	cases := map[string]string{
		"empty":            "",
		"dots":             strings.Repeat(".", 1<<20),
		"truncated":        good[:len(good)-4],
		"edited":           parts[0] + "." + flip(parts[1]) + "." + parts[2],
		"no signature":     parts[0] + "." + parts[1] + ".",
		"alg none":         base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"HS256 by our key": sign(full(), jwt.SigningMethodHS256, []byte(pub)),
		"foreign key":      mint(t, foreign, claims()),
		"no exp":           sign(without("exp"), jwt.SigningMethodEdDSA, key.Private),
		"no nbf":           sign(without("nbf"), jwt.SigningMethodEdDSA, key.Private),
		"no jti":           sign(without("jti"), jwt.SigningMethodEdDSA, key.Private),
		"no room":          sign(without("room"), jwt.SigningMethodEdDSA, key.Private),
		"other audience":   sign(with("aud", "someone"), jwt.SigningMethodEdDSA, key.Private),
		"other issuer":     sign(with("iss", "someone"), jwt.SigningMethodEdDSA, key.Private),
		"of the future":    sign(with("nbf", t0.Add(time.Hour).Unix()), jwt.SigningMethodEdDSA, key.Private),
		"unknown cnf":      sign(with("cnf", map[string]any{"jkt": "x"}), jwt.SigningMethodEdDSA, key.Private),
	}
	v := verifier(r, t0)
	for name, token := range cases {
		if _, err := v.Verify(token); !errors.Is(err, pass.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if _, err := verifier(r, t0.Add(time.Hour)).Verify(good); !errors.Is(err, pass.ErrExpired) {
		t.Errorf("expired: got %v", err)
	}
}

// An edge that is down for a moment says nothing about a pass.
func TestKeysThatCannotBeReadAreNoVerdict(t *testing.T) {
	t.Parallel()
	away := func(string) (ed25519.PublicKey, error) {
		return nil, fmt.Errorf("%w: connection refused", pass.ErrNoKeys)
	}
	_, err := pass.NewVerifier(away, func() time.Time { return t0 }).Verify(mint(t, ring(t), claims()))
	if !errors.Is(err, pass.ErrNoKeys) || errors.Is(err, pass.ErrInvalid) {
		t.Errorf("got %v, want ErrNoKeys alone", err)
	}
}

// Q10: a rotation mid-sale loses nobody's pass.
func TestQ10_PassesOfTheOldKeyStayGoodUntilTheyExpire(t *testing.T) {
	t.Parallel()
	old := ring(t)
	token := mint(t, old, claims())
	next, err := old.Add(t0.Add(-time.Minute), t0.Add(time.Hour)) // published before it is used
	if err != nil {
		t.Fatal(err)
	}
	if k, err := next.Signer(t0); err != nil || k.ID != old.Keys()[0].ID {
		t.Fatalf("a key signs before its time: %v", err)
	}
	rotated, err := next.Rotate(t0, time.Minute, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if k, _ := rotated.Signer(t0); k.ID == old.Keys()[0].ID {
		t.Error("the old key still signs after a rotation")
	}
	if _, err := verifier(rotated, t0.Add(time.Minute)).Verify(token); err != nil {
		t.Errorf("old pass after rotation: %v", err)
	}
	if _, err := verifier(rotated, t0.Add(6*time.Minute)).Verify(token); err == nil {
		t.Error("a retired key still verifies")
	}
	data, err := json.Marshal(rotated)
	if err != nil {
		t.Fatal(err)
	}
	again, err := pass.ParseRing(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verifier(again, t0.Add(time.Minute)).Verify(token); err != nil {
		t.Errorf("after a round trip through the file: %v", err)
	}
	set, err := rotated.JWKS(t0)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(set), `"d"`) || strings.Contains(string(set), "seed") {
		t.Error("the JWKS shows a secret")
	}
	if n := strings.Count(string(set), `"kid"`); n != 2 {
		t.Errorf("JWKS publishes %d keys, want 2: %s", n, set)
	}
}

func flip(s string) string {
	b := []byte(s)
	if b[10] == 'A' {
		b[10] = 'B'
	} else {
		b[10] = 'A'
	}
	return string(b)
}

// The last moment a pass is taken is its exp, rounded up to a whole second, and the
// leeway; the session then may last its longest.
func TestASlotIsLeasedForTheLongestSessionOfTheLatestExchange(t *testing.T) {
	t.Parallel()
	admitted := t0.Add(time.Microsecond)
	c := claims()
	c.IssuedAt, c.ExpiresAt = admitted.Truncate(time.Second), admitted.Add(pass.Life).Truncate(time.Second).Add(time.Second)
	r := ring(t)
	token := mint(t, r, c)
	latest := c.ExpiresAt.Add(pass.Leeway - time.Millisecond)
	if _, err := verifier(r, latest).Verify(token); err != nil {
		t.Fatalf("within the leeway: %v", err)
	}
	if _, err := verifier(r, latest.Add(time.Second)).Verify(token); err == nil {
		t.Fatal("taken later than this test thinks")
	}
	if over, lease := latest.Add(pass.LongestSession), admitted.Add(pass.SlotLease); lease.Before(over) {
		t.Errorf("the slot is free %s before the session's end", over.Sub(lease))
	}
}
