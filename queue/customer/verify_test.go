package customer

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var now = time.Unix(1_790_000_000, 0)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// shop is an issuer with a key of each kind.
type shop struct {
	ed     ed25519.PrivateKey
	ec     *ecdsa.PrivateKey
	secret []byte
	jwks   []byte
}

func newShop(t *testing.T) shop {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := shop{ed: ed, ec: ec, secret: []byte("a secret of thirty-two bytes, ok")}
	point, err := ec.PublicKey.Bytes() // 4 ‖ x ‖ y
	if err != nil {
		t.Fatal(err)
	}
	pub, _ := ed.Public().(ed25519.PublicKey)
	s.jwks, err = json.Marshal(map[string]any{"keys": []map[string]any{
		{"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "use": "sig", "x": b64(pub)},
		{"kty": "EC", "crv": "P-256", "kid": "ec", "x": b64(point[1:33]), "y": b64(point[33:])},
		{"kty": "RSA", "kid": "rsa", "n": b64([]byte("whatever")), "e": "AQAB"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s shop) trust(t *testing.T) Trust {
	t.Helper()
	keys, err := ParseJWKS(s.jwks, true)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := Secret(s.secret)
	if err != nil {
		t.Fatal(err)
	}
	return Trust{Issuer: "https://shop.example", Keys: append(keys, secret)}
}

func good() jwt.MapClaims {
	return jwt.MapClaims{
		"iss": "https://shop.example", "aud": "cinema", "sub": "alice", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

func with(key string, value any) jwt.MapClaims {
	c := good()
	if c[key] = value; value == nil {
		delete(c, key)
	}
	return c
}

func sign(t *testing.T, m jwt.SigningMethod, key any, kid string, c jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(m, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	trust := s.trust(t)
	for name, token := range map[string]string{
		"EdDSA":             sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", good()),
		"EdDSA, no key id":  sign(t, jwt.SigningMethodEdDSA, s.ed, "", good()),
		"ES256":             sign(t, jwt.SigningMethodES256, s.ec, "ec", good()),
		"HS256":             sign(t, jwt.SigningMethodHS256, s.secret, "", good()),
		"several audiences": sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", with("aud", []string{"mail", "cinema"})),
		"any room":          sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", with("aud", AnyRoom)),
		"a day":             sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", with("exp", now.Add(MaxLife).Unix())),
		"a clock ahead":     sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", with("iat", now.Add(Leeway).Unix())),
		"not before, ahead": sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", with("nbf", now.Add(Leeway).Unix())),
	} {
		if c, err := trust.Verify("cinema", token, now); err != nil || c != (Customer{"https://shop.example", "alice"}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	long := strings.Repeat("é", MaxSubject/2)
	if c, err := trust.Verify("cinema", sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", with("sub", long)), now); err != nil || c.Subject != long {
		t.Errorf("a long subject: %v", err)
	}
	trust.Audience = "tickets"
	if _, err := trust.Verify("cinema", sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", with("aud", "tickets")), now); err != nil {
		t.Errorf("an audience of its own: %v", err)
	}
	if _, err := trust.Verify("cinema", sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", good()), now); !errors.Is(err, ErrInvalid) {
		t.Errorf("the room's name beside an audience of its own: %v", err)
	}
}

func TestBadTokens(t *testing.T) {
	t.Parallel()
	s, other := newShop(t), newShop(t)
	trust := s.trust(t)
	ok := sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", good())
	parts := strings.Split(ok, ".")
	der, err := x509.MarshalPKIXPublicKey(s.ed.Public())
	if err != nil {
		t.Fatal(err)
	}
	pub, _ := s.ed.Public().(ed25519.PublicKey)
	none := b64([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "."
	critical := jwt.NewWithClaims(jwt.SigningMethodEdDSA, good())
	critical.Header["kid"], critical.Header["crit"] = "ed", []string{"b64"}
	crit, err := critical.SignedString(s.ed)
	if err != nil {
		t.Fatal(err)
	}
	numbered := jwt.NewWithClaims(jwt.SigningMethodEdDSA, good())
	numbered.Header["kid"] = 7
	number, err := numbered.SignedString(s.ed)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(c jwt.MapClaims) string { return sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", c) }
	for name, token := range map[string]string{
		"empty":                        "",
		"a megabyte of dots":           strings.Repeat(".", 1<<20),
		"short dots":                   strings.Repeat(".", 4000),
		"nonsense":                     "a.b.c",
		"no signature":                 parts[0] + "." + parts[1] + ".",
		"alg none":                     none,
		"alg none, signed":             none + parts[2],
		"another's key":                sign(t, jwt.SigningMethodEdDSA, other.ed, "ed", good()),
		"another's secret":             sign(t, jwt.SigningMethodHS256, append([]byte("x"), s.secret...), "", good()),
		"HS256 with the public key":    sign(t, jwt.SigningMethodHS256, []byte(pub), "ed", good()),
		"… without its id":             sign(t, jwt.SigningMethodHS256, []byte(pub), "", good()),
		"… as PEM":                     sign(t, jwt.SigningMethodHS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "ed", good()),
		"HS512 with the secret":        sign(t, jwt.SigningMethodHS512, s.secret, "", good()),
		"ES256 named as the other key": sign(t, jwt.SigningMethodES256, s.ec, "ed", good()),
		"unknown key id":               sign(t, jwt.SigningMethodEdDSA, s.ed, "nobody", good()),
		"a secret has no id":           sign(t, jwt.SigningMethodHS256, s.secret, "s", good()),
		"a number for a key id":        number,
		"extensions":                   crit,
		"other issuer":                 claims(with("iss", "https://evil.example")),
		"no issuer":                    claims(with("iss", nil)),
		"other room":                   claims(with("aud", "stadium")),
		"no audience":                  claims(with("aud", nil)),
		"expired":                      claims(with("exp", now.Unix())),
		"expired a second ago":         claims(with("exp", now.Add(-time.Second).Unix())),
		"no expiry":                    claims(with("exp", nil)),
		"more than a day":              claims(with("exp", now.Add(MaxLife+time.Second).Unix())),
		"the end of time":              claims(with("exp", 1e300)),
		"of the future":                claims(with("iat", now.Add(Leeway+time.Second).Unix())),
		"no instant of issue":          claims(with("iat", nil)),
		"not yet":                      claims(with("nbf", now.Add(Leeway+time.Second).Unix())),
		"no subject":                   claims(with("sub", nil)),
		"an empty subject":             claims(with("sub", "")),
		"a number for a subject":       claims(with("sub", 7)),
		"a subject of 201 bytes":       claims(with("sub", strings.Repeat("a", MaxSubject+1))),
		"a huge token":                 claims(with("more", strings.Repeat("a", maxBytes))),
		"edited":                       parts[0] + "." + b64([]byte(`{"iss":"https://shop.example","aud":"cinema","sub":"bob"}`)) + "." + parts[2],
	} {
		if c, err := trust.Verify("cinema", token, now); !errors.Is(err, ErrInvalid) || c != (Customer{}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	for name, nobody := range map[string]Trust{"no issuer": {Keys: trust.Keys}, "no keys": {Issuer: trust.Issuer}} {
		if _, err := nobody.Verify("cinema", ok, now); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s trusted: %v", name, err)
		}
	}
}

func TestKeySets(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if keys, err := ParseJWKS(s.jwks, false); err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	oct := fmt.Sprintf(`{"keys":[{"kty":"oct","kid":"s","k":%q}]}`, b64(s.secret))
	if keys, err := ParseJWKS([]byte(oct), true); err != nil || len(keys) != 1 || keys[0].alg != HS256 {
		t.Errorf("%+v, %v", keys, err)
	}
	for name, set := range map[string]struct {
		data string
		own  bool
	}{
		"a published secret": {oct, false},
		"a short secret":     {`{"keys":[{"kty":"oct","k":"c2hvcnQ"}]}`, true},
		"a private key": {fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","d":%q,"x":%q}]}`,
			b64(s.ed.Seed()), b64(s.ed[32:])), true},
		"only for encryption": {fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","use":"enc","x":%q}]}`, b64(s.ed[32:])), true},
		"pinned to another":   {fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"HS256","x":%q}]}`, b64(s.ed[32:])), true},
		"no keys":             {`{"keys":[]}`, true},
		"no JSON":             {`<html>`, true},
	} {
		if keys, err := ParseJWKS([]byte(set.data), set.own); err == nil {
			t.Errorf("%s: %d keys", name, len(keys))
		}
	}
	if _, err := Secret(make([]byte, 31)); err == nil {
		t.Error("a secret of 31 bytes")
	}
}

func TestPublishedKeysAreFetchedWhenNeeded(t *testing.T) {
	t.Parallel()
	s, next := newShop(t), newShop(t)
	var body atomic.Pointer[[]byte]
	var asked, down atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if down.Load() == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(*body.Load())
	}))
	t.Cleanup(srv.Close)
	body.Store(&s.jwks)
	down.Store(1)
	r := NewRemote(srv.URL, slog.New(slog.DiscardHandler))
	trust := Trust{Issuer: "https://shop.example", Keys: r}
	ok := sign(t, jwt.SigningMethodEdDSA, s.ed, "ed", good())
	if _, err := trust.Verify("cinema", ok, now); !errors.Is(err, ErrNoKeys) || errors.Is(err, ErrInvalid) {
		t.Fatalf("while the issuer is down: %v", err)
	}
	down.Store(0)
	r.asked.Store(0) // the pause is over
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := trust.Verify("cinema", ok, now); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := trust.Verify("cinema", sign(t, jwt.SigningMethodEdDSA, next.ed, "new", good()), now); !errors.Is(err, ErrInvalid) {
		t.Errorf("an unknown key: %v", err)
	}
	was := asked.Load()
	for range 20 {
		_, _ = trust.Verify("cinema", sign(t, jwt.SigningMethodEdDSA, next.ed, "made-up", good()), now)
	}
	if n := asked.Load() - was; n > 2 {
		t.Errorf("20 made-up key ids cost %d fetches", n)
	}
	rotated := []byte(strings.Replace(string(next.jwks), `"ed"`, `"new"`, 1))
	body.Store(&rotated)
	r.asked.Store(1) // long ago: a key of the next set, and the old one is gone
	r.begin = r.begin.Add(-remotePause)
	if _, err := trust.Verify("cinema", sign(t, jwt.SigningMethodEdDSA, next.ed, "new", good()), now); err != nil {
		t.Errorf("a rotated key: %v", err)
	}
	if _, err := trust.Verify("cinema", ok, now); !errors.Is(err, ErrInvalid) {
		t.Errorf("a retired key: %v", err)
	}
	down.Store(1)
	r.begin = r.begin.Add(-remoteFresh)
	if _, err := trust.Verify("cinema", sign(t, jwt.SigningMethodEdDSA, next.ed, "new", good()), now); err != nil {
		t.Errorf("the last good set, while the issuer is down: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	secret, err := Secret([]byte("a secret of thirty-two bytes, ok"))
	if err != nil {
		f.Fatal(err)
	}
	trust := Trust{Issuer: "https://shop.example", Keys: Static{secret}}
	f.Add("eyJhbGciOiJIUzI1NiJ9.e30.x")
	f.Fuzz(func(t *testing.T, token string) {
		if c, err := trust.Verify("cinema", token, now); err == nil {
			t.Errorf("%q is %+v", token, c)
		}
	})
}
