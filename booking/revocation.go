package booking

import (
	"fmt"
	"strings"
	"time"
)

// The kinds of a revocation.
const (
	RevokeCustomer  = "customer"
	RevokePlace     = "place"
	RevokePass      = "pass"
	RevokeEverybody = "everybody"
)

// Bounds of what one order may name, and of what may be in force for one room: the
// edges keep that set in memory.
const (
	MaxRevokeCall = 10_000
	MaxRevoked    = 20_000
	maxSubject    = 256
	maxReason     = 500
)

// Revocation is an operator's order. It names fans, or everybody whose pass was
// granted before an instant, or both.
type Revocation struct {
	Room      string // "": every room
	Customers []string
	Places    []string // place ids, 32 hex digits
	Passes    []string // pass ids (jti)
	// EverybodyBefore revokes the passes granted before it, and their sessions; nil:
	// nobody by this. A pass tells whole seconds: one granted in the very second of
	// the instant counts as before it. The zero time means this moment.
	EverybodyBefore *time.Time
	Reason          string
}

// RevocationError refuses an order: nothing was changed.
type RevocationError struct{ Problem string }

func (e *RevocationError) Error() string { return "booking: revocation: " + e.Problem }

func badRevocation(format string, args ...any) error {
	return &RevocationError{Problem: fmt.Sprintf(format, args...)}
}

// validate is the pure half of Revoke: bounds and shapes, by no clock.
func (r Revocation) validate() error {
	n := len(r.Customers) + len(r.Places) + len(r.Passes)
	switch {
	case n == 0 && r.EverybodyBefore == nil:
		return badRevocation("it names nobody")
	case n > MaxRevokeCall:
		return badRevocation("it names %d, at most %d a call", n, MaxRevokeCall)
	case strings.TrimSpace(r.Reason) == "":
		return badRevocation("a reason is needed")
	case len(r.Reason) > maxReason:
		return badRevocation("the reason has %d bytes, at most %d", len(r.Reason), maxReason)
	}
	for _, list := range []struct {
		kind string
		of   []string
	}{{RevokeCustomer, r.Customers}, {RevokePlace, r.Places}, {RevokePass, r.Passes}} {
		for i, s := range list.of {
			if !validSubject(list.kind, s) {
				return badRevocation("%s %d, %.40q, is no id of a %s", list.kind, i+1, s, list.kind)
			}
		}
	}
	return nil
}

func validSubject(kind, s string) bool {
	if s == "" || len(s) > maxSubject {
		return false
	}
	if kind != RevokePlace {
		return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xfffd }) < 0
	}
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// subjects flattens the order into rows: kinds and subjects side by side, each
// subject once.
func (r Revocation) subjects() (kinds, subjects []string) {
	seen := map[string]bool{}
	add := func(kind string, list []string) {
		for _, s := range list {
			if seen[kind+":"+s] {
				continue
			}
			seen[kind+":"+s] = true
			kinds, subjects = append(kinds, kind), append(subjects, s)
		}
	}
	add(RevokeCustomer, r.Customers)
	add(RevokePlace, r.Places)
	add(RevokePass, r.Passes)
	if r.EverybodyBefore != nil {
		kinds, subjects = append(kinds, RevokeEverybody), append(subjects, "")
	}
	return kinds, subjects
}

// Revoked is what is in force for one room, never written to once made.
type Revoked struct {
	Version   int64 // grows with every order and every lifting
	Customers map[string]bool
	Places    map[string]bool
	Passes    map[string]bool
	Before    time.Time // everybody whose pass was granted before; zero: nobody by this
}

// Refuses tells whether a visit is revoked. It may be asked of nil.
func (r *Revoked) Refuses(customer, place, jti string, granted time.Time) bool {
	if r == nil {
		return false
	}
	return r.Customers[customer] || r.Places[place] || r.Passes[jti] || granted.Before(r.Before)
}
