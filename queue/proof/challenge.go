package proof

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Algorithm is the only one issued and taken.
const Algorithm = "SHA-256"

const (
	challengeLife = 5 * time.Minute
	maxNumber     = 10_000_000 // no challenge costs more, whatever a caller asks for
	digestHex     = 32         // hex digits of a mark and of who a challenge is for
)

// Challenge is what the browser gets, in ALTCHA's words.
type Challenge struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"` // hex of SHA-256(salt + number)
	MaxNumber int    `json:"maxnumber"` // the number lies between 0 and here
	Salt      string `json:"salt"`
	Signature string `json:"signature"` // hex of HMAC-SHA-256(key, challenge)
}

// Issuer makes challenges and wait tickets and checks what comes back. It is safe
// for concurrent use and keeps nothing.
type Issuer struct {
	keys [][]byte // the first signs, all verify
	now  func() time.Time
}

// New derives the keys from the place secrets, of which there must be one.
func New(placeSecrets [][]byte) *Issuer {
	i := &Issuer{now: time.Now}
	for _, secret := range placeSecrets {
		i.keys = append(i.keys, sum(secret, "usher proof of work"))
	}
	if len(i.keys) == 0 {
		panic("proof: a place secret is needed")
	}
	return i
}

func sum(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// Issue makes a challenge with numbers up to cost, for one fan in the room. who are
// the one or two names by which that fan may come back: see Verify.
func (i *Issuer) Issue(room string, who []string, cost int) Challenge {
	cost = min(max(cost, 1), maxNumber)
	number, err := rand.Int(rand.Reader, big.NewInt(int64(cost)+1))
	if err != nil {
		panic(err) // crypto/rand never fails since Go 1.24
	}
	var nonce [12]byte
	_, _ = rand.Read(nonce[:])
	salt := fmt.Sprintf("%x?expires=%d&for=%s&cost=%d&", nonce, i.now().Add(challengeLife).Unix(), strings.Join(owners(room, who), "."), cost)
	c := Challenge{Algorithm: Algorithm, Challenge: solve(salt, number.Int64()), MaxNumber: cost, Salt: salt}
	c.Signature = hex.EncodeToString(sum(i.keys[0], c.Challenge))
	return c
}

// solve is the challenge that a number answers.
func solve(salt string, number int64) string {
	h := sha256.Sum256(strconv.AppendInt([]byte(salt), number, 10))
	return hex.EncodeToString(h[:])
}

// whose binds a challenge to one fan in one room. The lengths keep two pairs from
// making one digest; nobody can read the fan's id from it, which is random.
func whose(room, who string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "usher proof for\x00%d\x00%s\x00%s", len(room), room, who))
	return hex.EncodeToString(h[:])[:digestHex]
}

// owners are the digests of one or two names.
func owners(room string, who []string) (list []string) {
	for _, w := range who[:min(len(who), 2)] {
		list = append(list, whose(room, w))
	}
	return list
}

// params are what a salt says. ok is false for one that is not of our making.
func params(salt string) (p struct {
	expires time.Time
	owners  []string
	cost    int
}, ok bool) {
	_, query, found := strings.Cut(salt, "?")
	if !found || !strings.HasSuffix(query, "&") {
		return p, false
	}
	v, err := url.ParseQuery(strings.TrimSuffix(query, "&"))
	if err != nil {
		return p, false
	}
	expires, err1 := strconv.ParseInt(v.Get("expires"), 10, 64)
	cost, err2 := strconv.Atoi(v.Get("cost"))
	p.expires, p.owners, p.cost = time.Unix(expires, 0), strings.Split(v.Get("for"), "."), cost
	return p, err1 == nil && err2 == nil
}

// signed tells whether one of the keys made the signature of text, looking at all
// of them in constant time.
func (i *Issuer) signed(text, signature string) bool {
	given, err := hex.DecodeString(signature)
	if err != nil {
		return false
	}
	good := 0
	for _, key := range i.keys {
		good |= subtle.ConstantTimeCompare(given, sum(key, text))
	}
	return good == 1
}
