package booking

import "time"

// picker chooses the next step's requests: those at the front of the line that
// share no seat, no (customer, scope) and no key with one chosen before. What
// overlaps stays where it is and is first in the next step.
type picker struct {
	max       int
	seats     map[[2]string]struct{}
	customers map[[2]string]struct{}
	keys      map[[3]string]struct{}
}

func newPicker(most int) *picker {
	return &picker{
		max: most, seats: map[[2]string]struct{}{}, customers: map[[2]string]struct{}{}, keys: map[[3]string]struct{}{},
	}
}

// pick splits waiting into a step and the rest, both in order of arrival. A
// request that pauses (a stranger has its seats) is passed over and blocks
// nobody: what it waits for may take its whole deadline.
func (p *picker) pick(waiting []*pending, now time.Time) (step, rest []*pending) {
	clear(p.seats)
	clear(p.customers)
	clear(p.keys)
	for i, w := range waiting {
		if len(step) == p.max {
			return step, append(rest, waiting[i:]...)
		}
		if w.notBefore.After(now) || !p.admit(w.take) {
			rest = append(rest, w)
			continue
		}
		step = append(step, w)
	}
	return step, rest
}

// admit claims everything r touches. A request that does not fit still claims
// it, so that one behind it which wants the same cannot overtake.
func (p *picker) admit(r *takeRequest) bool {
	free := true
	customer := [2]string{r.scopeID, r.customer}
	if _, taken := p.customers[customer]; taken {
		free = false
	}
	p.customers[customer] = struct{}{}
	if r.key != "" {
		key := [3]string{r.showtimeID, r.customer, r.key}
		if _, taken := p.keys[key]; taken {
			free = false
		}
		p.keys[key] = struct{}{}
	}
	for _, s := range r.seats {
		seat := [2]string{r.showtimeID, s}
		if _, taken := p.seats[seat]; taken {
			free = false
		}
		p.seats[seat] = struct{}{}
	}
	return free
}
