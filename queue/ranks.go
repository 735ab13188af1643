package queue

import "sort"

// ranks tell positions in one line, as of one reading.
type ranks struct {
	waiting int
	exact   []int64 // scores at the head, ascending
	samples []point // behind the head, ascending; the last is the tail
}

type point struct {
	rank  int // from 0
	score int64
}

func readRanks(waiting int64, scores, points []any) ranks {
	r := ranks{waiting: int(waiting), exact: make([]int64, len(scores))}
	for i := range scores {
		r.exact[i] = number(scores, i)
	}
	for i := 0; i+1 < len(points); i += 2 {
		r.samples = append(r.samples, point{rank: int(number(points, i)), score: number(points, i+1)})
	}
	return r
}

// tail is the highest score in line; 0 when nobody waits.
func (r *ranks) tail() int64 {
	switch {
	case len(r.samples) > 0:
		return r.samples[len(r.samples)-1].score
	case len(r.exact) > 0:
		return r.exact[len(r.exact)-1]
	}
	return 0
}

// position counts from 1: exact near the head, interpolated between the samples
// behind, one past the end for a score the board has not seen.
func (r *ranks) position(score int64) int {
	i := sort.Search(len(r.exact), func(i int) bool { return r.exact[i] >= score })
	if i < len(r.exact) {
		return i + 1
	}
	j := sort.Search(len(r.samples), func(j int) bool { return r.samples[j].score >= score })
	if j == len(r.samples) {
		return r.waiting + 1
	}
	lo, hi := point{rank: len(r.exact) - 1, score: r.exact[len(r.exact)-1]}, r.samples[j]
	if j > 0 {
		lo = r.samples[j-1]
	}
	if hi.score <= lo.score {
		return hi.rank + 1
	}
	part := float64(score-lo.score) / float64(hi.score-lo.score)
	return lo.rank + int(part*float64(hi.rank-lo.rank)+0.5) + 1
}
