package booking

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotATime says that a text is neither an instant nor a time on a clock.
var ErrNotATime = errors.New("must be an instant with its offset, 2026-12-24T20:00:00+01:00, or a time on the local clock, 2026-12-24 20:00")

// localClock is a time without an offset, as people write it on a poster.
const localClock = "2006-01-02 15:04"

// ParseTime reads an instant (RFC 3339), or a time on the clock of loc. Where
// clocks change, a time that does not exist (put forward) and one that happens twice
// (put back) are refused: an opening an hour early or late is worse than a question.
func ParseTime(text string, loc *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	wall, err := time.Parse(localClock, text)
	if err != nil || wall.Format(localClock) != text {
		return time.Time{}, ErrNotATime
	}
	// The offsets before and after any change near by; each gives one instant, which
	// counts when the clock shows the text at it.
	var found []time.Time
	for _, probe := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		_, offset := wall.Add(probe).In(loc).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(loc)
		if at.Format(localClock) == text && (len(found) == 0 || !found[0].Equal(at)) {
			found = append(found, at)
		}
	}
	switch len(found) {
	case 0:
		return time.Time{}, fmt.Errorf("%s does not exist in %s: clocks are put forward then", text, loc)
	case 1:
		return found[0], nil
	}
	return time.Time{}, fmt.Errorf("%s happens twice in %s: clocks are put back then; write %s or %s",
		text, loc, found[0].Format(time.RFC3339), found[1].Format(time.RFC3339))
}
