package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"usher/admission"
)

// Adaptive is the mode of a valve that follows the lanes; any other is fixed.
const Adaptive = "adaptive"

// Valve is how many fans may come in now, of what the operator allows at most.
type Valve struct {
	Mode   string // fixed, adaptive
	Rate   int    // admissions a minute in force
	Cap    int    // fans inside at once, in force
	Reason admission.Reason
	Since  time.Time // since when they are in force; zero when it is not known
	// DeadTime is the time between an admission and its load that the valve reckons
	// with; 0 for a fixed one.
	DeadTime time.Duration
}

// valveState is what Redis keeps of a room's valve.
type valveState struct {
	n       int64 // number of the decision
	seq     int64 // the report it was made for
	at      int64 // when it was written down, µs
	refused int64 // when a report was refused as old news, µs
	rate    int   // in force, within the operator's
	slots   int
	rseq    int64 // the report that is there
	rat     int64 // … and the database's time of it, µs
	plan    admission.State
}

// decisionLife is how long a decision stands that nobody renews; head.lua has it,
// too. Each report renews it, so this ends only what nobody steers.
const decisionLife = 15 * time.Second

func readValve(st fields) valveState {
	v := valveState{
		n: st.number("vn"), seq: st.number("vseq"), at: st.number("vat"), refused: st.number("refused"),
		rate: int(st.number("vrate")), slots: int(st.number("vcap")), rseq: st.number("rseq"), rat: st.number("rat"),
	}
	if json.Unmarshal([]byte(st["vstate"]), &v.plan) != nil {
		v.plan = admission.State{} // never decided
	}
	return v
}

// inForce is the room's valve by one board. The scripts reckon the same: see room()
// in head.lua, and a report that is too old.
func (b *board) inForce(ttl time.Duration) Valve {
	c := Valve{Mode: "fixed", Rate: b.view.RatePerMinute, Cap: b.view.Cap, Reason: admission.Fixed}
	if b.view.Valve.Mode != Adaptive {
		return c
	}
	p := b.valve.plan
	v := Valve{
		Mode: Adaptive, Rate: min(b.valve.rate, c.Rate), Cap: min(b.valve.slots, c.Cap), Reason: p.Reason, Since: p.Since, DeadTime: p.Dead,
	}
	if !b.fresh(ttl) || b.now-b.valve.at > micros(decisionLife) {
		v.Rate, v.Cap = 0, 0
	}
	if v.Rate == 0 && (p.Rate > 0 || p.Reason == "") { // not by a decision
		v.Reason, v.Since = admission.NoReport, time.Time{}
	}
	return v
}

// fresh reports whether the last report was young when the board was read.
func (b *board) fresh(ttl time.Duration) bool {
	return b.report > 0 && b.now-b.report <= micros(ttl)
}

// steer makes the room's valve decide when there is something to decide: a report
// nobody has decided on, or none for too long. Every edge does so after reading a
// board; valve.lua takes the first.
func (l *Line) steer(ctx context.Context, r *room) error {
	b := r.board.Load()
	if b == nil || b.view.Valve.Mode != Adaptive {
		return nil
	}
	v := b.valve
	if b.fresh(l.opts.ReportTTL) && v.rseq == v.seq {
		return nil
	}
	next, d := admission.Plan(v.plan, b.planReport(l.opts.ReportTTL), admission.Ceiling{
		Rate: b.view.RatePerMinute, Cap: b.view.Cap, Open: b.view.State == "open" && b.view.Mode != "reject",
	})
	if next == v.plan && v.rseq == v.seq {
		return nil // still closed for the same reason
	}
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("queue: valve: %w", err)
	}
	reply, err := l.run(ctx, valveScript, r.keys, v.n, v.rseq, d.Rate, d.Cap, text)
	if err != nil {
		return err
	}
	if written, ok := reply.(int64); !ok || written == 0 {
		return nil // another edge decided, and the next board tells what
	}
	l.metrics.valve.decided(r.name, d)
	after := *b
	after.valve.plan, after.valve.n, after.valve.seq, after.valve.at = next, v.n+1, v.rseq, b.now
	after.valve.rate, after.valve.slots = d.Rate, d.Cap
	after.view.Valve = after.inForce(l.opts.ReportTTL)
	r.board.CompareAndSwap(b, &after) // a newer board has it anyway
	l.metrics.valve.observe(after.view)
	return nil
}

func (b *board) planReport(ttl time.Duration) admission.Report {
	return admission.Report{
		Seq: b.valve.rseq, At: instant(b.valve.rat), Stamp: instant(b.report), Now: instant(b.now), TTL: ttl,
		Refused:   b.valve.refused > b.report,
		QueueWait: b.view.Lanes.QueueWait, Shed: b.view.Lanes.Shed, Delay: b.view.Lanes.HoldDelay,
		Admitted: b.view.Admitted, Inside: b.view.Inside, Waiting: b.view.Waiting + b.view.Called,
	}
}

// Look reads a room's board now and answers what it says: for a process that keeps
// no boards. Errors: ErrUnknownRoom, ErrStale.
func (l *Line) Look(ctx context.Context, name string) (RoomView, error) {
	r, _, err := l.room(ctx, name)
	if err != nil {
		return RoomView{}, err
	}
	if err := l.refresh(ctx, r); err != nil {
		return RoomView{}, err
	}
	return l.roomView(r.board.Load()), nil
}
