package booking

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/admission/pass"
)

// The reasons a session ends for.
const (
	EndLeft      = "left"
	EndConfirmed = "confirmed"
	EndExpired   = "expired"
	EndRevoked   = "revoked"
)

// Session is one visit: what a pass was exchanged for.
type Session struct {
	ID        string
	Room      string
	PlaceID   string
	JTI       string
	Customer  string    // the same fan across passes; limits count by it
	Token     string    // what the fan's cookie or Bearer header holds
	ExpiresAt time.Time // with a live hold counted in
	SeatQuota int       // most seats one hold may have in the session's room; told by OpenSession only
	GrantedAt time.Time // when the line admitted the fan, by the pass: whole seconds
	Ended     bool      // over: good only for reading its customer's own bookings
	Revoked   bool      // by the operator: good for that alone as well
}

// readableFor is how long an ended session may still read its bookings.
const readableFor = 24 * time.Hour

// sqlLivesUntil is when a session (alias s) ends: its own time, or a little after
// its last live hold's, but never past what the line has leased its slot for. It
// is derived, not stored: a hold that is extended or released needs no second
// write. $1 and $2 are the longest session and the margin in seconds.
// The sum inside max and IS TRUE keep the planner from walking all live holds by
// their expiry instead of the session's few.
const sqlLivesUntil = `LEAST(s.created_at + make_interval(secs => $1::int), GREATEST(s.expires_at,
	(SELECT max(h.expires_at + make_interval(secs => $2::int)) FROM hold h
	  WHERE h.session_id = s.session_id AND (h.state IN ('OPEN', 'PAYING')) IS TRUE)))`

const sessionColumns = `
	SELECT s.session_id::text, s.room_id, s.place_id, s.jti, s.customer_id, u.until,
	       s.ended_at IS NOT NULL OR u.until <= clock_timestamp(),
	       COALESCE(s.ended_at, u.until) > clock_timestamp() - make_interval(secs => $3::int), s.binding_hash,
	       COALESCE(s.granted_at, s.created_at),
	       (SELECT ` + SQLRevokedVisit + ` FROM session v WHERE v.session_id = s.session_id)
	  FROM session s CROSS JOIN LATERAL (SELECT ` + sqlLivesUntil + ` AS until) u`

const (
	sqlSession       = sessionColumns + ` WHERE s.session_id = $4`
	sqlSessionByPass = sessionColumns + ` WHERE s.jti = $4`

	// UNIQUE (jti) decides who has exchanged a pass; $7 is the session's life in
	// seconds, $8 when the pass was granted, $9 when it is over, leeway and all: by this
	// clock too, as the line frees the slot by then. A slow node, or a statement that
	// waited, must not open a visit that nobody counts.
	sqlNewSession = `
		INSERT INTO session (session_id, jti, room_id, place_id, customer_id, binding_hash, granted_at, expires_at)
		SELECT $1, v.jti, v.room_id, v.place_id, v.customer_id, $6, v.granted_at, clock_timestamp() + make_interval(secs => $7::int)
		  FROM (SELECT $2::text AS jti, $3::text AS room_id, $4::text AS place_id, $5::text AS customer_id,
		               $8::timestamptz AS granted_at, NULL::timestamptz AS created_at) v
		 WHERE clock_timestamp() < $9::timestamptz AND NOT ` + SQLRevokedVisit + `
		ON CONFLICT (jti) DO NOTHING`

	sqlPassOver = `SELECT clock_timestamp() >= $1::timestamptz`

	sqlSeatQuota = `SELECT COALESCE(max(max_per_hold), 0) FROM event
	                 WHERE event_id IN (SELECT event_id FROM showtime WHERE room_id = $1)`
)

// OpenSession exchanges a pass for a session, once. The same browser asking
// again (the pass' binding, or sessionCookie: the token of that very session) gets
// the same session, created false; anybody else ErrPassUsed.
//
// A bound pass without its binding is ErrBindingRequired; ErrRevoked, ErrPassInvalid,
// ErrPassExpired and ErrSessionEnded (exchanged, and over since) say the rest.
func (o *Office) OpenSession(ctx context.Context, passToken, binding, sessionCookie string) (s Session, created bool, err error) {
	claims, err := o.verifyPass(passToken)
	if err != nil {
		return Session{}, false, err
	}
	if o.revoked.room(claims.Room).Refuses(claims.Customer, claims.PlaceID, claims.ID, claims.IssuedAt) {
		return Session{}, false, ErrRevoked
	}
	if !claims.Bound(binding) {
		// The session's own cookie proves the browser as well, but only after the fact.
		s, err := o.oldSession(ctx, claims, sessionCookie, false)
		if errors.Is(err, ErrSessionInvalid) {
			return Session{}, false, ErrBindingRequired
		}
		return s, false, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Session{}, false, fmt.Errorf("booking: new session: %w", err)
	}
	over := claims.ExpiresAt.Add(pass.Leeway)
	tag, err := o.pool.Exec(ctx, sqlNewSession, id.String(), claims.ID, claims.Room, claims.PlaceID, claims.Customer,
		claims.BindingHash, int(o.opts.SessionLife/time.Second), claims.IssuedAt, over)
	if sqlState(err) == "23503" { // foreign key: no such room here
		return Session{}, false, fmt.Errorf("%w: room %q is not known here", ErrPassInvalid, claims.Room)
	}
	if err != nil {
		return Session{}, false, fmt.Errorf("booking: open session: %w", err)
	}
	s, err = o.oldSession(ctx, claims, sessionCookie, tag.RowsAffected() == 1 || claims.BindingHash != "")
	if tag.RowsAffected() == 0 && errors.Is(err, ErrSessionInvalid) { // no session stood in the way
		var expired bool
		if err := o.pool.QueryRow(ctx, sqlPassOver, over).Scan(&expired); err != nil {
			return Session{}, false, fmt.Errorf("booking: open session: %w", err)
		}
		if err = ErrRevoked; expired {
			err = ErrPassExpired
		}
	}
	return s, tag.RowsAffected() == 1, err
}

// PassRoom tells which room a pass is for and changes nothing: what may refuse a
// call because of the room must do so before the pass is used up. Errors:
// ErrPassInvalid, ErrPassExpired, ErrUnavailable.
func (o *Office) PassRoom(passToken string) (string, error) {
	claims, err := o.verifyPass(passToken)
	return claims.Room, err
}

func (o *Office) verifyPass(token string) (pass.Claims, error) {
	claims, err := o.opts.Verifier.Verify(token)
	switch {
	case errors.Is(err, pass.ErrExpired):
		return claims, fmt.Errorf("%w: %w", ErrPassExpired, err)
	case errors.Is(err, pass.ErrNoKeys):
		return claims, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case err != nil:
		return claims, fmt.Errorf("%w: %w", ErrPassInvalid, err)
	}
	return claims, nil
}

// oldSession finds the session a pass was exchanged for. Unless proven, the
// caller must show that session's token. proven is by a binding, which counts only if
// the session was opened by it: a known customer's devices have passes of one id, each
// bound to its own browser, and one session, of whoever came first.
func (o *Office) oldSession(ctx context.Context, claims pass.Claims, sessionCookie string, proven bool) (Session, error) {
	s, _, bound, err := o.loadSession(ctx, sqlSessionByPass, claims.ID)
	if err != nil {
		return Session{}, err
	}
	proven = proven && bound == claims.BindingHash
	if !proven && subtle.ConstantTimeCompare([]byte(sessionCookie), []byte(s.Token)) != 1 {
		return Session{}, ErrPassUsed
	}
	if s.Ended {
		return Session{}, ErrSessionEnded
	}
	if err := o.pool.QueryRow(ctx, sqlSeatQuota, s.Room).Scan(&s.SeatQuota); err != nil {
		return Session{}, fmt.Errorf("booking: seat quota: %w", err)
	}
	return s, nil
}

// loadSession reads one session by sql and key; readable says whether it may
// still read its bookings; bindingHash is of the pass that opened it. ErrSessionInvalid when there is none.
func (o *Office) loadSession(ctx context.Context, sql, key string) (s Session, readable bool, bindingHash string, err error) {
	err = o.pool.QueryRow(ctx, sql, int(pass.LongestSession/time.Second), int(sessionMargin/time.Second),
		int(readableFor/time.Second), key).
		Scan(&s.ID, &s.Room, &s.PlaceID, &s.JTI, &s.Customer, &s.ExpiresAt, &s.Ended, &readable, &bindingHash,
			&s.GrantedAt, &s.Revoked)
	if errors.Is(err, pgx.ErrNoRows) {
		return Session{}, false, "", ErrSessionInvalid
	}
	if err != nil {
		return Session{}, false, "", fmt.Errorf("booking: read session: %w", err)
	}
	s.ExpiresAt, s.Token = s.ExpiresAt.UTC(), o.sessionToken(s.ID)
	return s, readable, bindingHash, nil
}

// sessionToken is derived from the id, so that the same exchange asked again
// gives the same token and the database holds no secret.
func (o *Office) sessionToken(id string) string {
	mac := hmac.New(sha256.New, o.opts.SessionSecret)
	_, _ = mac.Write([]byte("session\x00" + id))
	return id + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// sessionID is the id of a token that we made; ErrSessionInvalid otherwise.
func (o *Office) sessionID(token string) (string, error) {
	id, _, ok := strings.Cut(token, ".")
	if !ok || len(token) > 128 || uuid.Validate(id) != nil ||
		subtle.ConstantTimeCompare([]byte(token), []byte(o.sessionToken(id))) != 1 {
		return "", ErrSessionInvalid
	}
	return id, nil
}

// Session finds a living session by its token, as it was at most a second ago
// (a take looks again). ErrSessionInvalid for a token that is not ours,
// ErrSessionEnded for a session that is over, ErrRevoked for one whose fan the
// operator has revoked.
func (o *Office) Session(ctx context.Context, token string) (Session, error) {
	s, err := o.ReaderSession(ctx, token)
	switch {
	case err != nil:
		return s, err
	case s.Revoked:
		return Session{}, ErrRevoked
	case s.Ended:
		return Session{}, ErrSessionEnded
	}
	return s, nil
}

// ReaderSession is Session for reading one's own bookings: it also accepts a
// session that ended less than 24 hours ago, with Ended set, and one that was revoked
// (Revoked): what was bought before stays bought.
func (o *Office) ReaderSession(ctx context.Context, token string) (Session, error) {
	id, err := o.sessionID(token)
	if err != nil {
		return Session{}, err
	}
	if s, ok := o.visits.get(id); ok {
		s.Revoked = s.Revoked || o.refuses(s)
		return s, nil
	}
	s, readable, _, err := o.loadSession(ctx, sqlSession, id)
	if err != nil {
		return Session{}, err
	}
	if s.Ended && !readable {
		return Session{}, ErrSessionEnded
	}
	if !s.Ended {
		o.visits.put(s)
	}
	return s, nil
}

// sessionCache spares the pool one read a request while a fan is busy.
type sessionCache struct {
	mu   sync.Mutex
	byID map[string]cachedSession
}

type cachedSession struct {
	at time.Time
	s  Session
}

const (
	sessionCacheFor  = time.Second
	sessionCacheSize = 20_000
)

func newSessionCache() *sessionCache { return &sessionCache{byID: map[string]cachedSession{}} }

func (c *sessionCache) get(id string) (Session, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[id]
	if !ok || time.Since(e.at) > sessionCacheFor {
		return Session{}, false
	}
	return e.s, true
}

func (c *sessionCache) put(s Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byID) >= sessionCacheSize {
		clear(c.byID) // cheaper than an order nobody needs: entries live a second
	}
	c.byID[s.ID] = cachedSession{at: time.Now(), s: s}
}

func (c *sessionCache) forget(id string) {
	c.mu.Lock()
	delete(c.byID, id)
	c.mu.Unlock()
}
