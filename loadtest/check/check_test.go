package check

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCompareAgreesWithCountingEveryPair(t *testing.T) {
	t.Parallel()
	for n := range 60 {
		came := make([]string, n)
		for i := range came {
			came[i] = fmt.Sprint("fan-", i)
		}
		perm := rand.Perm(n)
		served := make([]string, n)
		want := int64(0)
		for i, p := range perm {
			served[i] = came[p]
			for _, before := range perm[:i] {
				if before > p {
					want++
				}
			}
		}
		o := Compare(came, served)
		if o.N != n || o.Inversions != want || len(o.Duplicates)+len(o.Strangers)+len(o.Missing) != 0 {
			t.Fatalf("%v: %+v, want %d inversions", perm, o, want)
		}
		slices.Reverse(came)
		if back := Compare(came, served); n > 1 && math.Abs(back.Tau+o.Tau) > 1e-9 {
			t.Fatalf("tau %v, reversed %v", o.Tau, back.Tau)
		}
	}
}

func TestCompareNamesWhoCameTwiceOrNever(t *testing.T) {
	t.Parallel()
	o := Compare([]string{"a", "b", "c", "a", "d"}, []string{"b", "a", "x", "b"})
	if o.N != 2 || o.Inversions != 1 || o.Tau != -1 || fmt.Sprint(o.Duplicates, o.Strangers, o.Missing) != "[b] [x] [c d]" {
		t.Errorf("%+v", o)
	}
	if o := Compare([]string{"a"}, nil); o.Tau != 1 || o.N != 0 || len(o.Missing) != 1 {
		t.Errorf("%+v", o)
	}
}

func TestMostCountsTheBusiestInstant(t *testing.T) {
	t.Parallel()
	for want, spans := range map[int][]Span{
		0: nil,
		1: {{0, 5}, {5, 9}},
		2: {{0, 5}, {4, 9}, {6, 7}},
		3: {{0, 9}, {1, 8}, {2, 7}},
	} {
		if got := Most(spans); got != want {
			t.Errorf("%v: %d, want %d", spans, got, want)
		}
	}
}
