// Package check holds pure checkers of what a line promised: the order of calls, and
// that nobody came twice. Tests and the load test feed them what they saw; they
// import nothing of Usher, so that they cannot share its mistakes.
package check

import "sort"

// Order compares the sequence in which fans were served with the one they came in.
type Order struct {
	N          int      // fans compared: those in both sequences, each once
	Inversions int64    // pairs served in the other order than they came
	Tau        float64  // Kendall's rank correlation: 1 the same order, -1 reversed; 1 for fewer than two
	Duplicates []string // served more than once, in order of their second time
	Strangers  []string // served without having come
	Missing    []string // came and were not served, in order of arrival
}

// Compare counts in n log n. A fan who came twice counts by the first time.
//
// Tau is 1 - 2·inversions / (n(n-1)/2) after M. G. Kendall, "A New Measure of Rank
// Correlation", Biometrika 30 (1938); without ties there is but one tau.
func Compare(came, served []string) Order {
	at := make(map[string]int, len(came))
	for i, f := range came {
		if _, ok := at[f]; !ok {
			at[f] = i
		}
	}
	var o Order
	seen := make(map[string]bool, len(served))
	ranks := make([]int, 0, len(served))
	for _, f := range served {
		rank, ok := at[f]
		switch {
		case seen[f]:
			o.Duplicates = append(o.Duplicates, f)
		case !ok:
			o.Strangers = append(o.Strangers, f)
		default:
			ranks = append(ranks, rank)
		}
		seen[f] = true
	}
	told := map[string]bool{}
	for _, f := range came {
		if !seen[f] && !told[f] {
			o.Missing = append(o.Missing, f)
			told[f] = true
		}
	}
	o.N, o.Tau = len(ranks), 1
	o.Inversions = inversions(ranks, make([]int, len(ranks)))
	if n := float64(o.N); n > 1 {
		o.Tau = 1 - 2*float64(o.Inversions)/(n*(n-1)/2)
	}
	return o
}

// inversions counts the pairs out of order and sorts a; merge sort, buf as long as a.
func inversions(a, buf []int) int64 {
	if len(a) < 2 {
		return 0
	}
	mid := len(a) / 2
	n := inversions(a[:mid], buf[:mid]) + inversions(a[mid:], buf[mid:])
	i, j := 0, mid
	for k := range buf {
		if j == len(a) || i < mid && a[i] <= a[j] {
			buf[k], i = a[i], i+1
		} else {
			buf[k], j = a[j], j+1
			n += int64(mid - i)
		}
	}
	copy(a, buf)
	return n
}

// Span is one visit, in any unit of time: from inclusive, until exclusive.
type Span struct{ From, Until int64 }

// Most is how many of the spans overlap at the busiest instant.
func Most(spans []Span) int {
	type edge struct {
		at   int64
		step int
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		edges = append(edges, edge{s.From, 1}, edge{s.Until, -1})
	}
	sort.Slice(edges, func(i, j int) bool {
		if edges[i].at != edges[j].at {
			return edges[i].at < edges[j].at
		}
		return edges[i].step < edges[j].step // who leaves at the instant makes room first
	})
	now, most := 0, 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}
