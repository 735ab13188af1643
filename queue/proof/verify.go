package proof

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// ErrInvalid: not a solution of a challenge of ours, for this fan in this room,
// that is still good. Why is not told: who guesses learns nothing.
var ErrInvalid = errors.New("proof: not a valid proof")

// maxPayload bounds what is decoded; a real payload has some 480 bytes.
const maxPayload = 2048

// Paid is what a proof or a ticket was worth. Mark must be taken once and be
// remembered for Life: after that it is invalid by itself.
type Paid struct {
	Mark string
	Life time.Duration
	Cost int // of the challenge; 0 for a ticket
}

// payload is a solution as ALTCHA's widget and libraries send it. Other members,
// such as how long it took, are of no interest.
type payload struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	Number    *int64 `json:"number"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

// Verify checks a base64 payload of a challenge that must have been issued to who
// in the room. It asks no store: the caller takes the mark. ErrInvalid.
func (i *Issuer) Verify(room, who, text string) (Paid, error) {
	if len(text) > maxPayload {
		return Paid{}, ErrInvalid
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return Paid{}, ErrInvalid
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil || p.Number == nil || p.Algorithm != Algorithm {
		return Paid{}, ErrInvalid
	}
	// The signature first: nothing a stranger made up is looked at further.
	if !i.signed(p.Challenge, p.Signature) {
		return Paid{}, ErrInvalid
	}
	said, ok := params(p.Salt)
	if !ok || *p.Number < 0 || *p.Number > int64(said.cost) || solve(p.Salt, *p.Number) != p.Challenge {
		return Paid{}, ErrInvalid
	}
	life := said.expires.Sub(i.now())
	if life <= 0 || life > challengeLife+time.Minute || !slices.Contains(said.owners, whose(room, who)) {
		return Paid{}, ErrInvalid
	}
	// A second more than it is good for: Redis' clock may be behind ours.
	return Paid{Mark: p.Challenge[:digestHex], Life: life + time.Minute, Cost: said.cost}, nil
}
