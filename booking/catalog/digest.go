package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// finish names the layout by the digest of its content: the same seats and the same
// drawing have the same name, whoever writes them and in whichever words.
func (v *Venue) finish(s *shape) {
	raw, err := s.json()
	if err != nil {
		panic("catalog: a shape of numbers and texts is always JSON: " + err.Error())
	}
	v.Shape = raw
	h := sha256.New()
	enc := json.NewEncoder(h)
	_ = enc.Encode(v.Shape) // a hash never fails
	for _, seat := range v.Seats {
		_ = enc.Encode(seat)
	}
	v.LayoutID = fmt.Sprintf("%s@%s", v.ID, hex.EncodeToString(h.Sum(nil))[:12])
}
