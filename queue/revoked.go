package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrRevoked: the operator has revoked this fan; there is no place for them here.
var ErrRevoked = errors.New("queue: the operator has revoked this fan")

// Revoked is what is revoked in a room, as Postgres has it; the bridge ships it.
type Revoked struct {
	Version                   int64 // grows with every order and every lifting
	Customers, Places, Passes map[string]bool
	Before                    time.Time // everybody admitted before; zero: nobody by this
}

// revokedChunk is how many fields one run of revoke.lua takes.
const revokedChunk = 500

// revokedSet is a room's list as an edge keeps it, never written to once made. Its
// fields are those of the hash: c:customer, p:place, j:pass.
type revokedSet struct {
	version int64
	fields  map[string]bool
	before  int64 // µs; admissions before it are over, by whole seconds as in the pass
}

// place tells whether the place, or its fan, is revoked. It may be asked of nil, and
// while nobody is revoked it makes no garbage: every poll asks.
func (s *revokedSet) place(p place) bool {
	return s != nil && len(s.fields) > 0 && (s.fields["p:"+p.id()] || s.fields["c:"+p.customerID()])
}

// slot tells whether an admission is over by an order: nothing will come of its pass.
func (s *revokedSet) slot(placeID, jti string, granted int64) bool {
	if s == nil {
		return false
	}
	return granted/1e6*1e6 < s.before || len(s.fields) > 0 && (s.fields["p:"+placeID] || s.fields["j:"+jti])
}

func (v Revoked) set() *revokedSet {
	s := &revokedSet{version: v.Version, fields: make(map[string]bool, len(v.Customers)+len(v.Places)+len(v.Passes))}
	for prefix, subjects := range map[string]map[string]bool{"c:": v.Customers, "p:": v.Places, "j:": v.Passes} {
		for subject := range subjects {
			s.fields[prefix+subject] = true
		}
	}
	if !v.Before.IsZero() {
		s.before = v.Before.UnixMicro()
	}
	return s
}

// PutRevoked ships what is revoked in a room, by version: a list that is there
// already costs one read, an older one changes nothing. Places it names leave the line at once;
// customers by the next thing their browser asks, for the line does not know whose a
// place is. It says nothing about those inside: ending visits is booking's.
func (l *Line) PutRevoked(ctx context.Context, name string, v Revoked) error {
	r := l.own(name)
	there, err := l.rdb.HGet(ctx, r.keys[kRevoked], "version").Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return storeError("read revocations", err)
	}
	if there < v.Version {
		if err := l.shipRevoked(ctx, r, v.set()); err != nil {
			return err
		}
	}
	if old := r.revoked.Load(); old == nil || old.version < v.Version {
		r.revoked.Store(v.set())
	}
	return nil
}

func (l *Line) shipRevoked(ctx context.Context, r *room, s *revokedSet) error {
	begun, err := l.run(ctx, revokeScript, r.keys, s.version, "begin")
	if err != nil || begun == int64(0) {
		return err
	}
	// After the beginning: nobody adds from an older list any more.
	old, err := l.rdb.HKeys(ctx, r.keys[kRevoked]).Result()
	if err != nil {
		return storeError("read revocations", err)
	}
	known := make(map[string]bool, len(old))
	var diff []any
	for _, field := range old {
		if known[field] = true; len(field) > 2 && field[1] == ':' && !s.fields[field] {
			diff = append(diff, "-"+field)
		}
	}
	for field := range s.fields {
		if !known[field] {
			diff = append(diff, "+"+field)
		}
	}
	for len(diff) > 0 {
		n := min(len(diff), revokedChunk)
		if _, err := l.run(ctx, revokeScript, r.keys, append([]any{s.version, "part"}, diff[:n]...)...); err != nil {
			return err
		}
		diff = diff[n:]
	}
	_, err = l.run(ctx, revokeScript, r.keys, s.version, "end", s.before)
	return err
}

// learnRevoked reads the list when the board shows another version than the edge
// has. A Redis that lost everything shows none: the list of before stays in force.
func (l *Line) learnRevoked(ctx context.Context, r *room, version int64) error {
	if old := r.revoked.Load(); version == 0 || old != nil && old.version == version {
		return nil
	}
	all, err := l.rdb.HGetAll(ctx, r.keys[kRevoked]).Result()
	if err != nil {
		return storeError("read revocations", err)
	}
	s := &revokedSet{version: parseScore(all["version"]), before: parseScore(all["before"]), fields: make(map[string]bool, len(all))}
	for field := range all {
		if len(field) > 2 && field[1] == ':' {
			s.fields[field] = true
		}
	}
	r.revoked.Store(s)
	return nil
}

// turnAway refuses a revoked fan who asks for something and takes their place out
// of the line, so that it is not called in vain.
func (l *Line) turnAway(ctx context.Context, r *room, p place) error {
	if _, err := l.run(ctx, dropScript, r.keys, p.member[:]); err != nil {
		l.log.Warn("a revoked place could not be taken out of the line", "room", r.name, "err", err)
	}
	return fmt.Errorf("%w: place %s", ErrRevoked, p.id())
}
