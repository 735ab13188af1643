package queue

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"usher/admission/pass"
)

func TestATokenSaysThePlaceAndNobodyElseCanWriteOne(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	p, err := l.identify("cinema", Fan{ID: "fan", Bound: true})
	if err != nil {
		t.Fatal(err)
	}
	p.score, p.run = 1_790_000_000_123_456, 3
	token := l.sign(p)
	got, err := l.verify("cinema", token)
	if err != nil || got != p {
		t.Fatalf("got %+v, %v\nwant %+v", got, err, p)
	}
	if len(l.sign(place{room: strings.Repeat("a", 63), bound: true})) > maxTokenBytes {
		t.Error("the longest token is refused by its own length check")
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(token))
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]Token{
		"empty": "", "dots": Token(strings.Repeat(".", 1<<20)), "short": "AAAA", "padded": token + "=",
		"truncated": token[:len(token)-2], "longer": token + "A", "the place id": Token(p.id()),
	} {
		if _, err := l.verify("cinema", bad); !errors.Is(err, ErrBadToken) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for i := range raw { // one byte edited, anywhere
		edited := bytes.Clone(raw)
		edited[i] ^= 1
		if _, err := l.verify("cinema", Token(base64.RawURLEncoding.EncodeToString(edited))); !errors.Is(err, ErrBadToken) {
			t.Fatalf("byte %d edited: got %v", i, err)
		}
	}
	if _, err := l.verify("stadium", token); !errors.Is(err, ErrBadToken) {
		t.Errorf("another room's token: got %v", err)
	}
	if n := l.tokens.len(); n != 1 {
		t.Errorf("the cache holds %d tokens, want only the good one", n)
	}
}

func TestSecretsRotateAndNobodyLosesAPlace(t *testing.T) {
	t.Parallel()
	rdb := dial(t, "")
	next := bytes.Repeat([]byte("n"), 32)
	old := newLine(t, rdb)
	rotated := newLine(t, rdb, func(o *Options) { o.PlaceSecrets = [][]byte{next, testSecret} })
	dropped := newLine(t, rdb, func(o *Options) { o.PlaceSecrets = [][]byte{next} })

	p, _ := old.identify("cinema", Fan{ID: "fan", Bound: true})
	token := old.sign(p)
	if _, err := rotated.verify("cinema", token); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if _, err := dropped.verify("cinema", token); !errors.Is(err, ErrBadToken) {
		t.Errorf("after the old secret was dropped: got %v", err)
	}
	again, _ := rotated.identify("cinema", Fan{ID: "fan", Bound: true})
	if again.member != p.member || again.customer != p.customer {
		t.Error("the rotation made the fan a stranger")
	}
	b := rotated.Binding("cinema", "fan", p.bindingHash())
	if pass.HashBinding(b) != p.bindingHash() {
		t.Error("the binding of a place from before the rotation is not found")
	}
	if rotated.Binding("cinema", "other", p.bindingHash()) != "" {
		t.Error("another fan was told the binding")
	}
}

func TestIdsTellNothingAboutTheFan(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	a, _ := l.identify("cinema", Fan{ID: "fan"})
	b, _ := l.identify("stadium", Fan{ID: "fan"})
	if a.member == b.member {
		t.Error("one fan has the same place id in two rooms")
	}
	if a.customer != b.customer {
		t.Error("one fan is two customers")
	}
	// The customer id reaches integrators, the place id reaches logs: neither may
	// open the other's place.
	c, _ := l.identify("cinema", Fan{ID: a.customerID()})
	d, _ := l.identify("cinema", Fan{ID: a.id()})
	if c.member == a.member || d.member == a.member {
		t.Error("an id that others see is good for joining as the fan")
	}
}

func TestTheTokenCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newTokenCache(640)
	for i := range 10_000 {
		c.put(Token(distinct(i)), place{run: i})
	}
	if n := c.len(); n > 640 {
		t.Errorf("%d tokens kept", n)
	}
}

// distinct makes distinct texts.
func distinct(i int) string {
	return base64.RawURLEncoding.EncodeToString([]byte{byte(i), byte(i >> 8)})
}
