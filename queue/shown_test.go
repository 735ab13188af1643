package queue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Q8: whatever the estimates of no-shows and visits do, and however the answers of
// several edges follow each other: a fan who brings back what was shown sees neither the
// position nor the low end grow while nobody changed rate or cap.
func TestQ8_TheLowEndNeverGrowsWhileThePaceIsTheSame(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 8))
	grew := 0
	for range 200 {
		text, before := "", View{}
		position := 1 + rnd.IntN(3000)
		for range 50 {
			p := pace{
				open: true, rate: 300, cap: 100, inside: rnd.IntN(101), called: rnd.IntN(80), noShow: rnd.Float64() / 2,
				turn: time.Duration(1+rnd.IntN(600)) * time.Second, ended: 1 + rnd.IntN(100),
			}
			position = max(1, position-rnd.IntN(3))
			v := View{Status: Waiting, Position: position, ETA: estimate(p, position)}
			v.Room.Valve = Valve{Rate: p.rate, Cap: p.cap}
			if before.ETA != nil && v.ETA.Low > before.ETA.Low {
				grew++
			}
			ParseShown(text).bound(&v)
			if before.ETA != nil && v.ETA.Low > before.ETA.Low {
				t.Fatalf("the low end grew from %s to %s", before.ETA.Low, v.ETA.Low)
			}
			if v.ETA.High < v.ETA.Low {
				t.Fatalf("%+v", v.ETA)
			}
			text, before = v.Shown().String(), v
		}
	}
	if grew == 0 {
		t.Error("nothing would have grown: this shows nothing")
	}
	// The operator halves the rate: the truth is told.
	slower := View{Position: 300, ETA: &ETA{Low: time.Minute, High: 2 * time.Minute}}
	slower.Room.Valve = Valve{Rate: 150, Cap: 100}
	Shown{Position: 300, Low: 30 * time.Second, Rate: 300, Cap: 100}.bound(&slower)
	if slower.ETA.Low != time.Minute {
		t.Errorf("at half the rate: %+v", slower.ETA)
	}
}

func TestABrokenMemoryIsNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Shown{
		"": {}, "17": {Position: 17}, "17.30.300.100": {17, 30 * time.Second, 300, 100},
		"-1": {}, "x": {}, "1.2": {}, "1.2.3.4.5": {}, "1.-2.3.4": {}, "99999999999999999999": {}, "1e9": {},
	} {
		if got := ParseShown(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
