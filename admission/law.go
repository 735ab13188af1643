package admission

import "time"

// The numbers of the law. They are constants, not settings: each stands for a
// reason that does not differ between halls, and what does differ (how much a
// database serves) is what the valve finds out.
const (
	// Target is the mean wait of a hold for its batch that fans do not notice. Batches
	// take 5 to 20 ms, so it also means that a lane has begun to lag, not to work.
	Target = 100 * time.Millisecond

	slowShare     = 0.10 // of the ceiling, after a start, a stop or a silence
	stepShare     = 0.05 // of the ceiling, one step up
	floorShare    = 0.02 // of the ceiling: a valve that is cut for ever still sees whether things improve
	cutFactor     = 0.8  // over target
	severeFactor  = 0.5  // shed, or far over target
	severeTimes   = 4    // times the target is far over
	capFactor     = 0.8  // of the slots in use, when shed or far over
	usedShare     = 0.8  // of a rate must be admitted for it to count as tried
	capUsedShare  = 0.9  // of the slots must be taken
	provenShare   = 0.7  // of what held before is climbed to by doubling
	fadePerSecond = 0.1  // the worst wait halves in seven seconds

	settle        = 5 * time.Second // beyond the dead time, until reports show it
	confirmWithin = 5 * time.Second // a second report over target, or it was a hiccup
	leastDead     = 10 * time.Second
	mostDead      = 5 * time.Minute
	unknownDead   = time.Minute // before anybody held anything

	absurdWait  = 10 * time.Minute // a hold request lives seconds
	absurdDelay = 24 * time.Hour
	absurdCount = 10_000_000
)

// Slow is the level of a beginning below a ceiling.
func Slow(ceiling int) int { return share(slowShare, ceiling) }

// floor is the level that cuts do not go below.
func floor(ceiling int) int { return share(floorShare, ceiling) }

// share is a part of the ceiling, at least 1 and at most the ceiling.
func share(of float64, ceiling int) int {
	return min(max(1, int(of*float64(ceiling))), max(ceiling, 0))
}
