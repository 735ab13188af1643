package admission

import "time"

// Reason says why a valve stands where it stands. The set is closed: it is a
// label of metrics and a word in the operator's view.
type Reason string

// Reasons of a decision.
const (
	Fixed        Reason = "fixed"          // no valve: the operator's own numbers
	Raise        Reason = "raise"          // one step up: a whole dead time passed well
	SlowStart    Reason = "slow-start"     // after a start, a stop or a silence
	HoldDeadTime Reason = "hold-dead-time" // what the last step did is not to be seen yet
	NearTarget   Reason = "near-target"    // the lanes wait too long for another step
	OverTarget   Reason = "over-target"    // the lanes wait longer than they should
	Shed         Reason = "shed"           // the lanes refused work
	AtCeiling    Reason = "ceiling"        // the operator's numbers decide
	Idle         Reason = "idle"           // the present level is not used: no evidence for more
	Stopped      Reason = "stopped"        // the operator lets nobody in
	NoReport     Reason = "no-report"      // nothing is known of the lanes: nobody comes in
	StaleReport  Reason = "stale-report"   // what comes is old news: nobody comes in
	Lying        Reason = "lying"          // what comes cannot be true: no step up on it
)

// Reasons is every reason, for labels that are present from the start.
func Reasons() []Reason {
	return []Reason{
		Fixed, Raise, SlowStart, HoldDeadTime, NearTarget, OverTarget, Shed, AtCeiling, Idle, Stopped, NoReport,
		StaleReport, Lying,
	}
}

// Ceiling is what the operator allows.
type Ceiling struct {
	Rate int // admissions a minute
	Cap  int // fans inside at once
	Open bool
}

// Report is what is known of a room at one look. Stamp and Now are the line's
// clock, At is the database's: the two are never compared, only their progress.
type Report struct {
	Seq     int64
	At      time.Time // when the database was read
	Stamp   time.Time // when the line took this report; zero: never any
	Now     time.Time // when the line was looked at
	TTL     time.Duration
	Refused bool // a later report came, and was refused as late

	QueueWait time.Duration // mean wait of a hold for its batch
	Shed      int           // requests the lanes refused since the report before
	Delay     time.Duration // median from a visit's beginning to its first hold; 0: not known

	Admitted int64 // since the room began
	Inside   int
	Waiting  int // in line or called
}

// Decision is where the valve stands: never above the ceiling, never below 0.
type Decision struct {
	Rate   int // admissions a minute
	Cap    int // fans inside at once
	Reason Reason
}

// State is what a valve remembers between decisions. Its zero value is a valve that
// never decided.
type State struct {
	Rate   int       `json:"rate"`
	Cap    int       `json:"cap"`
	Reason Reason    `json:"reason"`
	Since  time.Time `json:"since"` // since when Rate and Cap are what they are

	Seq   int64     `json:"seq"`   // of the last report believed
	At    time.Time `json:"at"`    // … and its instants; zero while shut
	Stamp time.Time `json:"stamp"` // …

	// An epoch is one dead time with one level: what it was worth is known at its end.
	Epoch    time.Time     `json:"epoch"`    // when it began
	Admitted int64         `json:"admitted"` // counter at that instant
	Used     float64       `json:"used"`     // admissions a minute in the epoch before
	Cut      time.Time     `json:"cut"`      // the last cut
	Over     time.Time     `json:"over"`     // the last report over target
	Wait     time.Duration `json:"wait"`     // the worst wait lately
	Dead     time.Duration `json:"dead"`     // the dead time in force

	ProvenRate int `json:"provenRate"` // the most that held for a whole epoch
	ProvenCap  int `json:"provenCap"`
}

// Plan decides where the valve stands after a report, or at a look that found no
// new one. It is pure: the same three give the same answer on every edge. The law
// and its reasons are in the package's documentation.
func Plan(s State, r Report, c Ceiling) (State, Decision) {
	c.Rate, c.Cap = max(c.Rate, 0), max(c.Cap, 0)
	if r.Stamp.IsZero() || r.Now.Sub(r.Stamp) > r.TTL {
		reason := NoReport
		if r.Refused {
			reason = StaleReport
		}
		return s.shut(r.Now, reason)
	}
	if doubt := s.doubt(r); doubt != "" {
		// Neither a reason to trust less at once nor one to trust more; but doubt for as
		// long as a report lives is no report.
		if s.Stamp.IsZero() || r.Now.Sub(s.Stamp) > r.TTL {
			return s.shut(r.Now, doubt)
		}
		return s.stand(r.Now, c, doubt)
	}
	if r.Delay > 0 {
		s.Dead = min(max(r.Delay, leastDead), mostDead)
	} else if s.Dead == 0 {
		s.Dead = unknownDead
	}
	silent := s.Stamp.IsZero() || r.Stamp.Sub(s.Stamp) > r.TTL || r.Admitted < s.Admitted // a counter that fell: the line lost its memory
	fade(&s, r)
	s.Seq, s.At, s.Stamp = r.Seq, r.At, r.Stamp

	switch {
	case !c.Open || c.Rate == 0 || c.Cap == 0:
		return s.restart(r, c, Stopped)
	case silent || s.Reason == Stopped || s.Rate == 0 || s.Cap == 0:
		return s.restart(r, c, SlowStart)
	case r.Shed > 0 || r.QueueWait > Target:
		return s.over(r, c)
	}
	return s.under(r, c)
}

// doubt is why a report is not to be believed; "" when it is.
func (s State) doubt(r Report) Reason {
	switch {
	case r.QueueWait < 0, r.QueueWait > absurdWait, r.Shed < 0, r.Shed > absurdCount,
		r.Delay < 0, r.Delay > absurdDelay, r.Admitted < 0, r.Inside < 0, r.Waiting < 0:
		return Lying
	case s.Stamp.IsZero():
		return "" // nothing to compare with
	case r.Seq < s.Seq, r.Stamp.Before(s.Stamp):
		return Lying
	}
	behind := r.Stamp.Sub(s.Stamp) - r.At.Sub(s.At) // how much later than the last one it came
	switch {
	case behind < -r.TTL: // from the future
		return Lying
	case behind > r.TTL:
		return StaleReport
	}
	return ""
}

// shut lets nobody in, and forgets what reports are compared with: whatever speaks
// next is a beginning.
func (s State) shut(now time.Time, why Reason) (State, Decision) {
	s.Seq, s.At, s.Stamp = 0, time.Time{}, time.Time{}
	return s.move(now, 0, 0, why)
}

// stand keeps the level, below the ceiling.
func (s State) stand(now time.Time, c Ceiling, why Reason) (State, Decision) {
	return s.move(now, min(s.Rate, c.Rate), min(s.Cap, c.Cap), why)
}

func (s State) move(now time.Time, rate, slots int, why Reason) (State, Decision) {
	if rate != s.Rate || slots != s.Cap || s.Since.IsZero() {
		s.Since = now
	}
	s.Rate, s.Cap, s.Reason = rate, slots, why
	return s, Decision{Rate: rate, Cap: slots, Reason: why}
}

// epoch begins one.
func (s State) epoch(r Report) State {
	if took := r.Now.Sub(s.Epoch); !s.Epoch.IsZero() && took >= leastDead && r.Admitted >= s.Admitted {
		s.Used = float64(r.Admitted-s.Admitted) / took.Minutes()
	}
	s.Epoch, s.Admitted = r.Now, r.Admitted
	return s
}

// restart goes to the level of a beginning. Those inside are in already: the cap
// lets a few more join them.
func (s State) restart(r Report, c Ceiling, why Reason) (State, Decision) {
	s = s.epoch(r)
	s.Used = 0
	return s.move(r.Now, Slow(c.Rate), min(c.Cap, r.Inside+Slow(c.Cap)), why)
}

// over is a report over target: cut, but once for one cause.
func (s State) over(r Report, c Ceiling) (State, Decision) {
	why := OverTarget
	if r.Shed > 0 {
		why = Shed
	}
	severe := r.Shed > 0 || r.QueueWait >= severeTimes*Target
	confirmed := severe || !s.Over.IsZero() && r.Now.Sub(s.Over) <= confirmWithin
	s.Over = r.Now
	if !confirmed || !s.Cut.IsZero() && r.Now.Sub(s.Cut) < s.Dead+settle {
		return s.stand(r.Now, c, why)
	}
	factor := cutFactor
	if severe {
		factor = severeFactor
	}
	s = s.epoch(r)
	s.Cut = r.Now
	// A level that was not used did not make this load: what was used is cut.
	rate := float64(min(s.Rate, c.Rate))
	if s.Used > 0 {
		rate = min(rate, max(s.Used, rate/2))
	}
	rate = min(max(rate*factor, float64(floor(c.Rate))), float64(s.Rate))
	slots := min(s.Cap, c.Cap)
	if severe {
		used := float64(min(slots, r.Inside))
		slots = min(slots, max(int(used*capFactor), floor(c.Cap)))
	}
	s.ProvenRate, s.ProvenCap = min(s.ProvenRate, int(rate)), min(s.ProvenCap, slots)
	return s.move(r.Now, min(int(rate), c.Rate), slots, why)
}

// under is a report under target: perhaps a step up.
func (s State) under(r Report, c Ceiling) (State, Decision) {
	rate, slots := min(s.Rate, c.Rate), min(s.Cap, c.Cap)
	took := r.Now.Sub(s.Epoch)
	switch {
	case rate == c.Rate && slots == c.Cap:
		return s.stand(r.Now, c, AtCeiling)
	case r.Waiting == 0:
		return s.epoch(r).stand(r.Now, c, Idle)
	case took < s.Dead+settle:
		return s.stand(r.Now, c, HoldDeadTime)
	case s.Wait > Target/2:
		return s.stand(r.Now, c, NearTarget)
	}
	// One whole dead time with this level: was it used, and by which of the two?
	due := float64(rate) * took.Minutes()
	rateUsed := float64(r.Admitted-s.Admitted+1) >= usedShare*due
	capUsed := float64(r.Inside) >= capUsedShare*float64(slots)
	if s.Over.Before(s.Epoch) {
		if rateUsed {
			s.ProvenRate = max(s.ProvenRate, rate)
		}
		if capUsed {
			s.ProvenCap = max(s.ProvenCap, slots)
		}
	}
	s = s.epoch(r)
	up, more, quick := rate, slots, false
	if rateUsed {
		up, quick = climb(rate, c.Rate, s.ProvenRate)
	}
	if capUsed {
		var q bool
		more, q = climb(slots, c.Cap, s.ProvenCap)
		quick = quick || q
	}
	switch {
	case up == rate && more == slots && (rateUsed || capUsed):
		return s.stand(r.Now, c, AtCeiling)
	case up == rate && more == slots:
		return s.stand(r.Now, c, Idle)
	case quick:
		return s.move(r.Now, up, more, SlowStart)
	}
	return s.move(r.Now, up, more, Raise)
}

// climb is one step up from level: double as long as that stays well below what is
// proven, a twentieth of the ceiling beyond.
func climb(level, ceiling, proven int) (next int, quick bool) {
	if sure := int(provenShare * float64(proven)); level < sure {
		return min(2*level, sure, ceiling), true
	}
	return min(level+max(1, int(stepShare*float64(ceiling))), ceiling), false
}

// fade keeps the worst wait in mind for a while: several processes report in turn,
// and the one in trouble must not be overheard.
func fade(s *State, r Report) {
	s.Wait -= time.Duration(float64(s.Wait) * min(max(fadePerSecond*r.Stamp.Sub(s.Stamp).Seconds(), 0), 1))
	if s.Stamp.IsZero() {
		s.Wait = 0
	}
	s.Wait = max(s.Wait, r.QueueWait)
}
