package booking

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The bounds of what an operator may set; the schema's CHECKs hold the same.
const (
	MaxRatePerMinute = 1_000_000
	MaxRoomCap       = 1_000_000
	MaxPriorityShare = 100
)

// ErrUnknownRoom says that no room bears the id.
var ErrUnknownRoom = errors.New("booking: unknown room")

// ErrUnknownValve says that a valve is neither fixed nor adaptive.
var ErrUnknownValve = errors.New("booking: unknown valve")

// Room is one waiting room as the operator sees it.
type Room struct {
	ID, Title     string
	Mode          string // fifo, draw, passthrough, reject
	State         string // scheduled, gathering, drawing, open, paused, closed
	Valve         string // fixed, adaptive
	RatePerMinute int
	Cap           int
	PriorityShare int       // percent of the calls that go to the priority line while both lines wait
	GathersAt     time.Time // when a room of mode draw begins to take places; zero without
	OpensAt       time.Time // zero when the room has no opening
	Timezone      string    // IANA name of the event's clock
	Draw          Draw
	Run           int   // raised by a reset; places of an older run have ended
	Version       int64 // raised by every change
	UpdatedAt     time.Time
}

// RoomChange names what to change; what is nil stays.
type RoomChange struct {
	State         *string
	RatePerMinute *int
	Cap           *int
	PriorityShare *int
	Valve         *string    // fixed, adaptive
	GathersAt     *time.Time // the zero time takes it away
	OpensAt       *time.Time // the zero time takes it away
	PublicValue   *string    // of the draw; only before the drawing
	// OnlyFrom, when set, refuses the change of state unless the room is in this
	// state (or already in the wanted one). It tells "resume" from "open": a
	// resume sent late must not reopen a room that was closed meanwhile.
	OnlyFrom string
}

// RoomTransitionError says that a room in state From cannot go to state To.
type RoomTransitionError struct {
	Room, From, To string
	Why            string // what to do instead; may be ""
}

func (e *RoomTransitionError) Error() string {
	return fmt.Sprintf("booking: room %s is %s and cannot become %s", e.Room, e.From, e.To)
}

// RoomBoundsError says that a number is outside what a room may have.
type RoomBoundsError struct {
	Field         string // ratePerMinute, cap or priorityShare
	Got, Min, Max int
}

func (e *RoomBoundsError) Error() string {
	return fmt.Sprintf("booking: %s %d is not between %d and %d", e.Field, e.Got, e.Min, e.Max)
}

// RoomDatesError says that a room would begin to gather after it opens.
type RoomDatesError struct{ GathersAt, OpensAt time.Time }

func (e *RoomDatesError) Error() string {
	return fmt.Sprintf("booking: the gathering at %s is not before the opening at %s",
		e.GathersAt.Format(time.RFC3339), e.OpensAt.Format(time.RFC3339))
}

// Rooms reads and changes the waiting rooms' rows.
type Rooms struct{ pool *pgxpool.Pool }

// NewRooms works on pool; it starts nothing.
func NewRooms(pool *pgxpool.Pool) *Rooms { return &Rooms{pool: pool} }

const roomColumns = `room_id, title, mode, state, valve, rate_per_minute, cap, priority_share,
	COALESCE(gathers_at, '0001-01-01T00:00:00Z'::timestamptz), COALESCE(opens_at, '0001-01-01T00:00:00Z'::timestamptz),
	timezone, draw_seed, draw_public_value, COALESCE(draw_digest, ''), COALESCE(draw_entries, 0), COALESCE(draw_cut, 0),
	COALESCE(drawn_at, '0001-01-01T00:00:00Z'::timestamptz), run, version, updated_at`

func scanRoom(row pgx.CollectableRow) (Room, error) {
	var r Room
	var seed, digest []byte
	err := row.Scan(&r.ID, &r.Title, &r.Mode, &r.State, &r.Valve, &r.RatePerMinute, &r.Cap, &r.PriorityShare, &r.GathersAt, &r.OpensAt,
		&r.Timezone, &seed, &r.Draw.PublicValue, &digest, &r.Draw.Entries, &r.Draw.Cut, &r.Draw.At, &r.Run, &r.Version, &r.UpdatedAt)
	copy(r.Draw.Seed[:], seed)
	copy(r.Draw.Digest[:], digest)
	for _, t := range []*time.Time{&r.GathersAt, &r.OpensAt, &r.Draw.At, &r.UpdatedAt} {
		*t = t.UTC()
	}
	return r, err
}

// List is every room, by id.
func (rs *Rooms) List(ctx context.Context) ([]Room, error) {
	rows, _ := rs.pool.Query(ctx, `SELECT `+roomColumns+` FROM room ORDER BY room_id`)
	rooms, err := pgx.CollectRows(rows, scanRoom)
	if err != nil {
		return nil, fmt.Errorf("booking: list rooms: %w", err)
	}
	return rooms, nil
}

// Get is one room, or ErrUnknownRoom.
func (rs *Rooms) Get(ctx context.Context, id string) (Room, error) {
	return getRoom(ctx, rs.pool, id, "")
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func getRoom(ctx context.Context, q querier, id, lock string) (Room, error) {
	rows, _ := q.Query(ctx, `SELECT `+roomColumns+` FROM room WHERE room_id = $1 `+lock, id)
	r, err := pgx.CollectExactlyOneRow(rows, scanRoom)
	if errors.Is(err, pgx.ErrNoRows) {
		return Room{}, fmt.Errorf("%w: %q", ErrUnknownRoom, id)
	}
	if err != nil {
		return Room{}, fmt.Errorf("booking: read room: %w", err)
	}
	return r, nil
}

// Change applies c to the room and writes who did it to the audit log, in one
// transaction, and answers the room as it then is. Any change raises Version by
// one; a change that changes nothing is accepted and leaves no trace. Errors:
// ErrUnknownRoom, *RoomTransitionError, *RoomBoundsError, *RoomDatesError,
// *PublicValueError.
func (rs *Rooms) Change(ctx context.Context, actor, id string, c RoomChange) (Room, error) {
	var after Room
	err := pgx.BeginTxFunc(ctx, rs.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// The lock comes before the look: two operators' changes follow each other.
		before, err := getRoom(ctx, tx, id, "FOR UPDATE")
		if err != nil {
			return err
		}
		after, err = c.apply(before)
		if err != nil || after == before {
			return err
		}
		return saveRoom(ctx, tx, actor, before, &after)
	})
	if err != nil {
		return Room{}, fmt.Errorf("booking: change room: %w", err)
	}
	return after, nil
}

func saveRoom(ctx context.Context, tx pgx.Tx, actor string, before Room, after *Room) error {
	err := tx.QueryRow(ctx, `
		UPDATE room SET state = $2, rate_per_minute = $3, cap = $4, gathers_at = $5, opens_at = $6, draw_public_value = $7, valve = $8, priority_share = $9,
		       version = GREATEST(version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), updated_at = clock_timestamp()
		 WHERE room_id = $1
		RETURNING version, updated_at`, after.ID, after.State, after.RatePerMinute, after.Cap,
		orNull(after.GathersAt), orNull(after.OpensAt), after.Draw.PublicValue, after.Valve, after.PriorityShare).
		Scan(&after.Version, &after.UpdatedAt)
	if err != nil {
		return err
	}
	after.UpdatedAt = after.UpdatedAt.UTC()
	return auditRoom(ctx, tx, actor, before, *after)
}

func auditRoom(ctx context.Context, tx pgx.Tx, actor string, before, after Room) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO audit_log (actor, action, subject, detail)
		VALUES ($1, 'room.change', $2, $3)`, actor, "room:"+after.ID,
		map[string]any{"before": before.audited(), "after": after.audited()})
	return err
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// audited is the room as the audit log tells it; never its seed.
func (r Room) audited() map[string]any {
	m := map[string]any{
		"state": r.State, "ratePerMinute": r.RatePerMinute, "cap": r.Cap, "priorityShare": r.PriorityShare, "valve": r.Valve, "version": r.Version,
	}
	for name, t := range map[string]time.Time{"gathersAt": r.GathersAt, "opensAt": r.OpensAt, "drawnAt": r.Draw.At} {
		if !t.IsZero() {
			m[name] = t
		}
	}
	if r.Draw.PublicValue != "" {
		m["publicValue"] = r.Draw.PublicValue
	}
	if !r.Draw.At.IsZero() {
		m["drawEntries"], m["drawDigest"] = r.Draw.Entries, hex.EncodeToString(r.Draw.Digest[:])
	}
	return m
}

// apply is the pure half of Change.
func (c RoomChange) apply(r Room) (Room, error) {
	if c.State != nil && *c.State != r.State {
		if !mayBecome(r, *c.State) || (c.OnlyFrom != "" && c.OnlyFrom != r.State) {
			return r, &RoomTransitionError{Room: r.ID, From: r.State, To: *c.State, Why: whyNot(r, *c.State)}
		}
		r.State = *c.State
	}
	if c.RatePerMinute != nil {
		if err := within("ratePerMinute", *c.RatePerMinute, MaxRatePerMinute); err != nil {
			return r, err
		}
		r.RatePerMinute = *c.RatePerMinute
	}
	if c.Cap != nil {
		if err := within("cap", *c.Cap, MaxRoomCap); err != nil {
			return r, err
		}
		r.Cap = *c.Cap
	}
	if c.PriorityShare != nil {
		if err := within("priorityShare", *c.PriorityShare, MaxPriorityShare); err != nil {
			return r, err
		}
		r.PriorityShare = *c.PriorityShare
	}
	if c.Valve != nil {
		if *c.Valve != "fixed" && *c.Valve != "adaptive" {
			return r, fmt.Errorf("%w: %q", ErrUnknownValve, *c.Valve)
		}
		r.Valve = *c.Valve
	}
	if c.PublicValue != nil {
		v, err := publicValue(*c.PublicValue)
		if err != nil {
			return r, err
		}
		if v != r.Draw.PublicValue && (r.Mode != "draw" || r.State == "drawing" || !r.Draw.At.IsZero()) {
			return r, &PublicValueError{"it counts for a draw, and can be set only before the drawing"}
		}
		r.Draw.PublicValue = v
	}
	return c.dates(r)
}

// dates sets the schedule; the database keeps microseconds.
func (c RoomChange) dates(r Room) (Room, error) {
	if c.GathersAt != nil {
		r.GathersAt = c.GathersAt.UTC().Truncate(time.Microsecond)
	}
	if c.OpensAt != nil {
		r.OpensAt = c.OpensAt.UTC().Truncate(time.Microsecond)
	}
	if (c.GathersAt != nil || c.OpensAt != nil) && !r.GathersAt.IsZero() && !r.OpensAt.IsZero() && !r.GathersAt.Before(r.OpensAt) {
		return r, &RoomDatesError{GathersAt: r.GathersAt, OpensAt: r.OpensAt}
	}
	return r, nil
}

func within(field string, got, most int) error {
	if got < 0 || got > most {
		return &RoomBoundsError{Field: field, Got: got, Min: 0, Max: most}
	}
	return nil
}
