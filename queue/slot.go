package queue

import (
	"strconv"
	"strings"
)

// slot is one visit as the scripts write it: jti|granted|expires|score|renewals,
// and |1 once booking has told of the visit.
type slot struct {
	jti              string
	granted, expires int64 // µs
	score            int64 // of the place it was admitted from
	renewals         int
	used             bool // booking has told of the visit
}

// parseSlot reads a slot; the zero slot for a text that is none.
func parseSlot(s string) slot {
	f := strings.Split(s, "|")
	if len(f) < 5 {
		return slot{}
	}
	renewals, _ := strconv.Atoi(f[4])
	return slot{
		jti: f[0], granted: parseScore(f[1]), expires: parseScore(f[2]), score: parseScore(f[3]), renewals: renewals,
		used: len(f) > 5,
	}
}
