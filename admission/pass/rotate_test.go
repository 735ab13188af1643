package pass_test

import (
	"encoding/json"
	"testing"
	"time"

	"usher/admission/pass"
)

// At every moment of a rotation the key that signs has been published for as
// long as was asked, and a pass signed the moment before is still good.
func TestQ10_ARotationSignsWithNoKeyAVerifierMayLack(t *testing.T) {
	t.Parallel()
	const first, overlap = 90 * time.Second, 15 * time.Minute
	prePublished := func(ago time.Duration) pass.Ring {
		r, err := ring(t).Add(t0.Add(-ago), t0.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	unknown, err := pass.ParseRing([]byte(`{"keys":[` +
		`{"kid":"a","seed":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","activeFrom":"2026-01-01T00:00:00Z"},` +
		`{"kid":"b","seed":"BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","activeFrom":"2027-01-01T00:00:00Z"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ring pass.Ring
		turn time.Duration // after t0
	}{
		"no other key":                  {ring(t), first},
		"published long enough":         {prePublished(2 * time.Minute), 0},
		"published half a minute":       {prePublished(30 * time.Second), time.Minute},
		"published at an unknown time":  {unknown, first},
		"a turn that is near by itself": {func() pass.Ring { r, _ := ring(t).Add(t0, t0.Add(10*time.Second)); return r }(), 10 * time.Second},
	} {
		rotated, err := c.ring.Rotate(t0, first, overlap)
		if err != nil {
			t.Fatal(err)
		}
		again, err := rotated.Rotate(t0.Add(time.Second), first, overlap)
		if err != nil {
			t.Fatal(err)
		}
		if c.turn > time.Second {
			one, _ := json.Marshal(rotated)
			two, _ := json.Marshal(again)
			if string(one) != string(two) {
				t.Errorf("%s: asked again it changed\n%s\n%s", name, one, two)
			}
		}
		old := c.ring.Keys()[0].ID
		if c.turn > 0 {
			if k, err := rotated.Signer(t0.Add(c.turn - time.Second)); err != nil || k.ID != old {
				t.Errorf("%s: before the turn: %v, %v", name, k.ID == old, err)
			}
			if _, ok := rotated.Public(rotated.Keys()[1].ID, t0); !ok {
				t.Errorf("%s: the key that will sign is not published", name)
			}
		}
		if k, err := rotated.Signer(t0.Add(c.turn)); err != nil || k.ID == old {
			t.Errorf("%s: at the turn the old key signs: %v", name, err)
		}
		lastPass := t0.Add(c.turn + pass.Life + pass.Leeway)
		if _, ok := rotated.Public(old, lastPass); !ok {
			t.Errorf("%s: the last pass of the old key dies early", name)
		}
		if _, ok := rotated.Public(old, t0.Add(c.turn+overlap)); ok {
			t.Errorf("%s: the old key never retires", name)
		}
	}
}
