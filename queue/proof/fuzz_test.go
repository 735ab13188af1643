package proof

import (
	"encoding/base64"
	"testing"
	"time"
)

// Whatever a stranger sends is refused, and crashes nothing.
func FuzzStrangersPayNothing(f *testing.F) {
	now := time.Now()
	i, foreign := at(&now, newSecret), at(&now, oldSecret)
	c := foreign.Issue("cinema", both, 5)
	f.Add([]byte(`{"algorithm":"SHA-256","challenge":"`+c.Challenge+`","number":3,"salt":"`+c.Salt+`","signature":"`+c.Signature+`"}`), foreign.Ticket("cinema", both, 0))
	f.Add([]byte(`{"number":-1,"salt":"?expires=9&for=&cost=1&"}`), "")
	f.Add([]byte(`[`), "....")
	f.Fuzz(func(t *testing.T, raw []byte, ticket string) {
		params(string(raw)) // which a signature keeps strangers from
		for _, text := range []string{base64.StdEncoding.EncodeToString(raw), string(raw)} {
			if p, err := i.Verify("cinema", me, text); err == nil {
				t.Errorf("%s: %+v", raw, p)
			}
		}
		if p, err := i.Redeem("cinema", me, ticket); err == nil {
			t.Errorf("%q: %+v", ticket, p)
		}
	})
}
