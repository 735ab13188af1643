package catalog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	oneLabel   = regexp.MustCompile(`^(?:[A-Za-z]{1,3}|[0-9]{1,4})$`)
	rangeLabel = regexp.MustCompile(`^([A-Za-z]{1,3}|[0-9]{1,4})\s*-\s*([A-Za-z]{1,3}|[0-9]{1,4})(?:/([1-9][0-9]?))?$`)
)

// labels expands a list of labels and ranges, as in "A-H, J-M" or "1-15/2, 16-2/2".
// Each label may come once; at most most may come.
func labels(s string, most int) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		some, err := labelRange(strings.TrimSpace(part), most)
		if err != nil {
			return nil, err
		}
		for _, l := range some {
			if seen[l] {
				return nil, fmt.Errorf("%q names %s twice", s, l)
			}
			seen[l] = true
			out = append(out, l)
		}
		if len(out) > most {
			return nil, fmt.Errorf("%q names more than %d", s, most)
		}
	}
	return out, nil
}

func labelRange(s string, most int) ([]string, error) {
	if oneLabel.MatchString(s) {
		return []string{s}, nil
	}
	m := rangeLabel.FindStringSubmatch(s)
	if m == nil {
		return nil, fmt.Errorf("%q is neither a label such as C or 12 nor a range such as A-M or 1-16", s)
	}
	step := 1
	if m[3] != "" {
		step, _ = strconv.Atoi(m[3])
	}
	from, to, print, err := ends(m[1], m[2])
	if err != nil {
		return nil, fmt.Errorf("%q: %w", s, err)
	}
	if n := abs(to-from)/step + 1; n > most {
		return nil, fmt.Errorf("%q names %d, at most %d are allowed", s, n, most)
	}
	if to < from {
		step = -step
	}
	var out []string
	for i := from; (step > 0 && i <= to) || (step < 0 && i >= to); i += step {
		out = append(out, print(i))
	}
	return out, nil
}

// ends turns both ends of a range into numbers and back.
func ends(a, b string) (from, to int, print func(int) string, err error) {
	from, errA := strconv.Atoi(a)
	to, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return from, to, strconv.Itoa, nil
	}
	prefix := a[:len(a)-1]
	if errA == nil || errB == nil || len(a) != len(b) || prefix != b[:len(b)-1] {
		return 0, 0, nil, fmt.Errorf("both ends must be numbers, or letters that differ in the last only")
	}
	from, to = int(a[len(a)-1]), int(b[len(b)-1])
	if (from >= 'a') != (to >= 'a') {
		return 0, 0, nil, fmt.Errorf("both ends must be capitals, or neither")
	}
	return from, to, func(i int) string { return prefix + string(rune(i)) }, nil
}

func abs(i int) int {
	if i < 0 {
		return -i
	}
	return i
}
