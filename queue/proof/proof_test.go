package proof

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	oldSecret = bytes.Repeat([]byte("o"), 32)
	newSecret = bytes.Repeat([]byte("n"), 32)
	both      = []string{"fan:me", "net:192.0.2.0/24"}
)

const me = "fan:me"

// at is an issuer whose clock the test moves.
func at(now *time.Time, secrets ...[]byte) *Issuer {
	i := New(secrets)
	i.now = func() time.Time { return *now }
	return i
}

// answer finds the number of a challenge.
func answer(t testing.TB, c Challenge) int64 {
	t.Helper()
	for n := range int64(c.MaxNumber) + 1 {
		if solve(c.Salt, n) == c.Challenge {
			return n
		}
	}
	t.Fatalf("no number up to %d answers %+v", c.MaxNumber, c)
	return 0
}

func pack(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func solution(c Challenge, n int64) map[string]any {
	return map[string]any{"algorithm": c.Algorithm, "challenge": c.Challenge, "number": n, "salt": c.Salt, "signature": c.Signature}
}

func TestAProofIsForOneFanInOneRoomAndAWhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := at(&now, newSecret)
	c := i.Issue("cinema", both, 500)
	good := pack(t, solution(c, answer(t, c)))
	paid, err := i.Verify("cinema", me, good)
	if err != nil || paid.Cost != 500 || len(paid.Mark) != 32 || paid.Life < 4*time.Minute {
		t.Fatalf("%+v, %v", paid, err)
	}
	if _, err := i.Verify("cinema", both[1], good); err != nil {
		t.Errorf("by the other name: %v", err)
	}
	refused := func(what, room, who, text string) {
		t.Helper()
		if p, err := i.Verify(room, who, text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
	refused("another room", "stadium", me, good)
	refused("another fan", "cinema", "fan:you", good)
	refused("nobody", "cinema", "", good)
	now = now.Add(10*time.Minute + time.Second)
	refused("too late", "cinema", me, good)
	now = now.Add(-20 * time.Minute)
	refused("of the future", "cinema", me, good)
}

func TestAnEditedProofIsNone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := at(&now, newSecret)
	c := i.Issue("cinema", both, 500)
	n := answer(t, c)
	for n < 10 { // some digits to play with
		c = i.Issue("cinema", both, 500)
		n = answer(t, c)
	}
	good := pack(t, solution(c, n))
	refused := func(what, text string) {
		t.Helper()
		if p, err := i.Verify("cinema", me, text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", what, p, err)
		}
	}
	for at := range len(good) { // by one byte, wherever: refused, or the very same proof
		edited := []byte(good)
		edited[at] ^= 1
		if p, err := i.Verify("cinema", me, string(edited)); err == nil && p.Mark != c.Challenge[:digestHex] {
			t.Errorf("byte %d: another proof %+v", at, p)
		}
	}
	with := func(key string, v any) string {
		s := solution(c, n)
		if s[key] = v; v == nil {
			delete(s, key)
		}
		return pack(t, s)
	}
	digits := fmt.Sprint(n)
	for what, text := range map[string]string{
		"empty": "", "dots": strings.Repeat(".", 1<<20), "not base64": "%%%", "no object": pack(t, 7), "null": pack(t, nil),
		"with a tail": good + "=", "URL base64": strings.TrimRight(good, "=") + "_", "twice": pack(t, []any{solution(c, n)}),
		"next number": with("number", n+1), "negative": with("number", -n-1), "a fraction": with("number", float64(n)+0.5), "no number": with("number", nil),
		"text number": with("number", digits), "huge number": with("number", 1e300),
		"other algorithm": with("algorithm", "SHA-1"), "no algorithm": with("algorithm", nil),
		"upper case":  with("challenge", strings.ToUpper(c.Challenge)),
		"longer life": with("salt", strings.Replace(c.Salt, "expires=1", "expires=9", 1)),
		"a digit moved into the salt": pack(t, func() any {
			rest, _ := strconv.ParseInt(digits[1:], 10, 64)
			s := solution(c, rest)
			s["salt"] = c.Salt + digits[:1]
			return s
		}()),
		"short signature": with("signature", c.Signature[:60]), "no signature": with("signature", nil),
	} {
		refused(what, text)
	}
	// A challenge of the thief's own making, whole but for the key.
	mine := at(&now, oldSecret).Issue("cinema", both, 5)
	refused("another key", pack(t, solution(mine, answer(t, mine))))
}

func TestQ10_AProofSurvivesARotationOfSecrets(t *testing.T) {
	t.Parallel()
	now := time.Now()
	before, after, later := at(&now, oldSecret), at(&now, newSecret, oldSecret), at(&now, newSecret)
	c := before.Issue("cinema", both, 50)
	text, ticket := pack(t, solution(c, answer(t, c))), before.Ticket("cinema", both[:1], 0)
	for what, i := range map[string]*Issuer{"before": before, "after": after} {
		if _, err := i.Verify("cinema", me, text); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := i.Redeem("cinema", me, ticket); err != nil {
			t.Errorf("%s: the ticket: %v", what, err)
		}
	}
	if _, err := later.Verify("cinema", me, text); !errors.Is(err, ErrInvalid) {
		t.Errorf("once the old secret is gone: %v", err)
	}
	if _, err := later.Redeem("cinema", me, ticket); !errors.Is(err, ErrInvalid) {
		t.Errorf("once the old secret is gone: the ticket: %v", err)
	}
	if c := after.Issue("cinema", both, 5); !later.signed(c.Challenge, c.Signature) {
		t.Error("the new secret does not sign")
	}
}

func TestAWaitTicketIsGoodFromItsInstantOn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	i := at(&now, newSecret)
	ticket := i.Ticket("cinema", both, 30*time.Second)
	var early *TooEarlyError
	if _, err := i.Redeem("cinema", me, ticket); !errors.As(err, &early) || early.Wait > 30*time.Second || early.Wait < 29*time.Second {
		t.Errorf("early: %v", err)
	}
	now = now.Add(31 * time.Second)
	if _, err := i.Redeem("cinema", both[1], ticket); err != nil {
		t.Errorf("by the other name: %v", err)
	}
	first, err := i.Redeem("cinema", me, ticket)
	again, _ := i.Redeem("cinema", me, ticket)
	if err != nil || first.Mark == "" || first.Mark != again.Mark || first.Life < ticketLife-time.Minute {
		t.Errorf("in time: %+v, %v", first, err)
	}
	if one := i.Ticket("cinema", both, 0); one == i.Ticket("cinema", both, 0) {
		t.Error("two tickets of one instant are one")
	}
	refused := func(what, room, who, text string) {
		t.Helper()
		if _, err := i.Redeem(room, who, text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another room", "stadium", me, ticket)
	refused("another fan", "cinema", "fan:you", ticket)
	refused("dots", "cinema", me, strings.Repeat(".", 1<<20))
	refused("nothing", "cinema", me, "")
	for at := range len(ticket) {
		edited := []byte(ticket)
		if edited[at]++; edited[at] == '{' {
			edited[at] = 'a'
		}
		refused(fmt.Sprintf("byte %d", at), "cinema", me, string(edited))
	}
	now = now.Add(ticketLife)
	refused("too late", "cinema", me, ticket)
}

func TestCostFollowsPressure(t *testing.T) {
	t.Parallel()
	p := DefaultPrice
	for _, c := range []struct {
		pressure float64
		cost     int
		wait     time.Duration
	}{
		{0, 100_000, 15 * time.Second}, {-3, 100_000, 15 * time.Second}, {1, 100_000, 15 * time.Second},
		{1.5, 150_000, 23 * time.Second}, {2, 200_000, 30 * time.Second}, {8, 800_000, 2 * time.Minute},
		{16, 1_600_000, 2 * time.Minute}, {1e9, 1_600_000, 2 * time.Minute},
	} {
		if got := p.Cost(c.pressure); got != c.cost {
			t.Errorf("pressure %v costs %d, want %d", c.pressure, got, c.cost)
		}
		if got := p.Patience(c.pressure); got != c.wait {
			t.Errorf("pressure %v waits %s, want %s", c.pressure, got, c.wait)
		}
		if covers := p.Covers(p.Cost(c.pressure)); covers < min(c.pressure, 16) {
			t.Errorf("a proof for pressure %v covers only %v", c.pressure, covers)
		}
	}
	const phone = 100_000 // hashes a second
	if worst := float64(p.Cost(1)) / phone; worst > 2 {
		t.Errorf("in calm a phone computes %v s", worst)
	}
	if worst := float64(p.Cost(1e9)) / phone; worst > 20 {
		t.Errorf("at the worst a phone computes %v s", worst)
	}
	for last, x := 0, 0.0; x < 40; x += 0.1 {
		if c := p.Cost(x); c < last {
			t.Fatalf("cheaper at pressure %v", x)
		} else {
			last = c
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	i := New([][]byte{newSecret})
	c := i.Issue("cinema", both, 50)
	text := pack(b, solution(c, answer(b, c)))
	for b.Loop() {
		if _, err := i.Verify("cinema", me, text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIssue(b *testing.B) {
	i := New([][]byte{newSecret})
	for b.Loop() {
		i.Issue("cinema", both, 100_000)
	}
}
