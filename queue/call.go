package queue

import "context"

// callAll runs one step of the caller for every room.
func (l *Line) callAll(ctx context.Context) error {
	defer l.moved()
	return l.calls.Run(ctx, l.allRooms(), l.call)
}

// call ends leases and missed invitations, grants slots to those standing by and
// invites from the head. No edge is special: each runs it, the script decides.
// It runs again at once while a bound inside the script was met.
func (l *Line) call(ctx context.Context, r *room) error {
	for range runsPerTick {
		// Grants may lie two and a half ticks ahead: a late tick leaves no gap in the
		// rate, and a pause still stops admissions well within a second.
		reply, err := l.runList(ctx, callScript, r.keys, micros(l.opts.ClaimWindow), micros(l.opts.PassLife),
			micros(l.opts.SlotLease), micros(l.opts.ReportTTL), micros(l.opts.Tick*5/2), micros(inviteAhead),
			loopBound, keptMissed, l.witness(r))
		if err != nil {
			return err
		}
		l.metrics.called(r.name, reply)
		r.memory.remember(number(reply, 6), number(reply, 7))
		r.passed(number(reply, 8))
		r.passed(number(reply, 5)) // each edge looks here more often than it reads boards
		l.settlePromises(r)
		if number(reply, 0) == 0 {
			return nil
		}
	}
	return nil
}
