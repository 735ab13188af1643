// Package gate is the door: codes on tickets that a scanner without a network can check,
// the scan of one that has a network, and the list of tickets that are good no more.
//
// A code is signed (Ed25519) with keys derived from secrets of the box office alone: a
// scanner needs the public keys and, for the tickets given back since, a signed list. It
// must remember whom it let in itself; two scanners without a network cannot know of each
// other. A scan online decides in one conditional UPDATE, so of any number of scanners
// one lets a ticket in.
package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// What a scan comes to.
const (
	Valid         = "valid"          // let them in; the ticket is used by this
	AlreadyIn     = "already-in"     // somebody came in with it
	Refunded      = "refunded"       // given back
	WrongShowtime = "wrong-showtime" // good for another performance
)

// ErrUnknownShowtime: there is no such performance.
var ErrUnknownShowtime = errors.New("gate: no such showtime")

// Gate scans tickets. It is safe for concurrent use.
type Gate struct {
	pool   *pgxpool.Pool
	signer *Signer
}

// New builds a gate; it starts nothing.
func New(pool *pgxpool.Pool, signer *Signer) *Gate { return &Gate{pool: pool, signer: signer} }

// Code is what the ticket's QR code says.
func (g *Gate) Code(t Ticket) string { return g.signer.Code(t) }

// Keys are the public keys of the codes, as a JWK set.
func (g *Gate) Keys() []byte { return g.signer.Keys() }

// Scan is one look at a ticket at the door.
type Scan struct {
	Code       string
	ShowtimeID string // the door's
	Scanner    string // who scans
	Key        string // names this scan, so that it may be repeated when its answer is lost; "": nothing does
}

// Entry is what the scanner shows.
type Entry struct {
	Result     string
	TicketID   string
	ShowtimeID string // the ticket's
	Title      string
	StartsAt   time.Time
	Seat       string // its code
	Section    string
	Row        string
	Number     string
	Standing   bool
	PriceClass string
	EnteredAt  time.Time // zero while nobody has come in with it
	EnteredBy  string
}

const (
	sqlEnter = `
		UPDATE ticket SET entered_at = clock_timestamp(), entered_by = $3, entry_key = NULLIF($4, '')
		 WHERE showtime_id = $1 AND ticket_id = $2 AND state = 'VALID' AND entered_at IS NULL`
	sqlEntry = `
		SELECT k.ticket_id::text, k.showtime_id, e.title, st.starts_at, k.seat_code, COALESCE(ls.section, ''),
		       COALESCE(ls.row_label, ''), COALESCE(ls.seat_label, k.seat_code), COALESCE(ls.standing, false),
		       COALESCE(pc.name, k.price_class), COALESCE(k.entered_at, 'epoch'), COALESCE(k.entered_by, ''),
		       k.state = 'REFUNDED', COALESCE(k.entry_key, '')
		  FROM ticket k
		  JOIN showtime st ON st.showtime_id = k.showtime_id
		  JOIN event e ON e.event_id = st.event_id
		  LEFT JOIN layout_seat ls ON ls.layout_id = st.layout_id AND ls.seat_code = k.seat_code
		  LEFT JOIN price_class pc ON pc.event_id = st.event_id AND pc.code = k.price_class
		 WHERE k.showtime_id = $1 AND k.ticket_id = $2`
	// Printed before codes were signed.
	sqlPlainCode = `SELECT ticket_id FROM ticket WHERE showtime_id = $1 AND code = $2`
	sqlRevoked   = `
		SELECT t.ticket_id FROM ticket t WHERE t.showtime_id = $1 AND t.state = 'REFUNDED' ORDER BY t.ticket_id`
	sqlKnown = `SELECT clock_timestamp() FROM showtime WHERE showtime_id = $1`
)

var statements = map[string]string{
	"sqlEnter": sqlEnter, "sqlEntry": sqlEntry, "sqlPlainCode": sqlPlainCode, "sqlRevoked": sqlRevoked, "sqlKnown": sqlKnown,
}

// Scan lets a ticket in, once: of scanners at the same moment one is told Valid, and it
// alone, again, for the same scan. Whatever else it answers changes nothing.
//
// Errors: ErrNoTicket, ErrUnknownShowtime.
func (g *Gate) Scan(ctx context.Context, s Scan) (Entry, error) {
	t, err := g.find(ctx, s)
	if err != nil {
		return Entry{}, err
	}
	entered := false
	if t.ShowtimeID == s.ShowtimeID {
		tag, err := g.pool.Exec(ctx, sqlEnter, t.ShowtimeID, t.ID, s.Scanner, s.Key)
		if err != nil {
			return Entry{}, fmt.Errorf("gate: enter: %w", err)
		}
		entered = tag.RowsAffected() == 1
	}
	var e Entry
	var refunded bool
	var key string
	err = g.pool.QueryRow(ctx, sqlEntry, t.ShowtimeID, t.ID).Scan(&e.TicketID, &e.ShowtimeID, &e.Title, &e.StartsAt, &e.Seat, &e.Section,
		&e.Row, &e.Number, &e.Standing, &e.PriceClass, &e.EnteredAt, &e.EnteredBy, &refunded, &key)
	if errors.Is(err, pgx.ErrNoRows) { // signed, and not in the books: of another installation with our secret
		return Entry{}, ErrNoTicket
	}
	if err != nil {
		return Entry{}, fmt.Errorf("gate: ticket: %w", err)
	}
	e.StartsAt = e.StartsAt.UTC()
	if e.EnteredAt = e.EnteredAt.UTC(); e.EnteredAt.Unix() == 0 {
		e.EnteredAt = time.Time{}
	}
	again := s.Key != "" && key == s.Key && e.EnteredBy == s.Scanner
	switch {
	case t.ShowtimeID != s.ShowtimeID:
		e.Result = WrongShowtime
	case refunded:
		e.Result = Refunded
	case entered, again:
		e.Result = Valid
	default:
		e.Result = AlreadyIn
	}
	return e, nil
}

// find reads the code.
func (g *Gate) find(ctx context.Context, s Scan) (Ticket, error) {
	if _, err := g.known(ctx, s.ShowtimeID); err != nil {
		return Ticket{}, err
	}
	t, err := g.signer.Read(s.Code)
	if err == nil {
		return t, nil
	}
	if _, err := letters.DecodeString(s.Code); err != nil {
		return Ticket{}, ErrNoTicket
	}
	t = Ticket{ShowtimeID: s.ShowtimeID}
	err = g.pool.QueryRow(ctx, sqlPlainCode, s.ShowtimeID, s.Code).Scan(&t.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return Ticket{}, ErrNoTicket
	}
	if err != nil {
		return Ticket{}, fmt.Errorf("gate: code: %w", err)
	}
	return t, nil
}

// known is the database's clock, ErrUnknownShowtime when there is no such performance.
func (g *Gate) known(ctx context.Context, showtimeID string) (now time.Time, err error) {
	if strings.ContainsRune(showtimeID, 0) { // which no text in the database has
		return now, ErrUnknownShowtime
	}
	err = g.pool.QueryRow(ctx, sqlKnown, showtimeID).Scan(&now)
	if errors.Is(err, pgx.ErrNoRows) {
		return now, ErrUnknownShowtime
	}
	if err != nil {
		return now, fmt.Errorf("gate: showtime: %w", err)
	}
	return now, nil
}

// RevokedType is the typ of a list's header.
const RevokedType = "usher-revoked-tickets+jwt"

// Revoked is the list of a performance's tickets that were given back, for scanners
// without a network: a JWT (EdDSA, by the codes' keys) with sub, the showtime, iat, and
// revoked, the tickets' ids. ErrUnknownShowtime.
func (g *Gate) Revoked(ctx context.Context, showtimeID string) (string, error) {
	now, err := g.known(ctx, showtimeID)
	if err != nil {
		return "", err
	}
	rows, _ := g.pool.Query(ctx, sqlRevoked, showtimeID)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return "", fmt.Errorf("gate: revoked tickets: %w", err)
	}
	return g.signer.list(showtimeID, now, ids)
}

func (s *Signer) list(showtimeID string, now time.Time, ids []uuid.UUID) (string, error) {
	revoked := make([]string, len(ids))
	for i, id := range ids {
		revoked[i] = id.String()
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "usher", "sub": showtimeID, "iat": now.Unix(), "revoked": revoked})
	t.Header["kid"], t.Header["typ"] = fmt.Sprintf("%x", s.keys[0].id), RevokedType
	signed, err := t.SignedString(s.keys[0].private)
	if err != nil {
		return "", fmt.Errorf("gate: sign: %w", err)
	}
	return signed, nil
}
