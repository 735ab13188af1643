package booking

import (
	"context"
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
)

// ErrUnknownRoom says that no room bears the id.
var ErrUnknownRoom = errors.New("booking: unknown room")

// Room is one waiting room as the operator sees it.
type Room struct {
	ID, Title     string
	Mode          string // fifo, draw, passthrough, reject
	State         string // scheduled, gathering, drawing, open, paused, closed
	Valve         string // fixed, adaptive
	RatePerMinute int
	Cap           int
	OpensAt       time.Time // zero when the room has no opening
	Run           int       // raised by a reset; places of an older run have ended
	Version       int64     // raised by every change
	UpdatedAt     time.Time
}

// RoomChange names what to change; what is nil stays.
type RoomChange struct {
	State         *string
	RatePerMinute *int
	Cap           *int
	// OnlyFrom, when set, refuses the change of state unless the room is in this
	// state (or already in the wanted one). It tells "resume" from "open": a
	// resume sent late must not reopen a room that was closed meanwhile.
	OnlyFrom string
}

// RoomVerb is the change an operator's word stands for: open, pause, resume or
// close. ok is false for any other word.
func RoomVerb(verb string) (c RoomChange, ok bool) {
	to := map[string]string{"open": "open", "pause": "paused", "resume": "open", "close": "closed"}
	state, ok := to[verb]
	if !ok {
		return RoomChange{}, false
	}
	c.State = &state
	if verb == "resume" {
		c.OnlyFrom = "paused"
	}
	return c, true
}

// RoomTransitionError says that a room in state From cannot go to state To.
type RoomTransitionError struct{ Room, From, To string }

func (e *RoomTransitionError) Error() string {
	return fmt.Sprintf("booking: room %s is %s and cannot become %s", e.Room, e.From, e.To)
}

// RoomBoundsError says that a number is outside what a room may have.
type RoomBoundsError struct {
	Field         string // ratePerMinute or cap
	Got, Min, Max int
}

func (e *RoomBoundsError) Error() string {
	return fmt.Sprintf("booking: %s %d is not between %d and %d", e.Field, e.Got, e.Min, e.Max)
}

// Rooms reads and changes the waiting rooms' rows.
type Rooms struct{ pool *pgxpool.Pool }

// NewRooms works on pool; it starts nothing.
func NewRooms(pool *pgxpool.Pool) *Rooms { return &Rooms{pool: pool} }

const roomColumns = `room_id, title, mode, state, valve, rate_per_minute, cap,
	COALESCE(opens_at, '0001-01-01T00:00:00Z'::timestamptz), run, version, updated_at`

func scanRoom(row pgx.CollectableRow) (Room, error) {
	var r Room
	err := row.Scan(&r.ID, &r.Title, &r.Mode, &r.State, &r.Valve, &r.RatePerMinute, &r.Cap,
		&r.OpensAt, &r.Run, &r.Version, &r.UpdatedAt)
	r.OpensAt, r.UpdatedAt = r.OpensAt.UTC(), r.UpdatedAt.UTC()
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
// ErrUnknownRoom, *RoomTransitionError, *RoomBoundsError.
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

// One statement, so one transaction: a room never opens without a line in the
// audit log. SKIP LOCKED leaves a room that another process opens, or an
// operator changes, at this moment to whoever has it, or to the next turn.
const sqlOpenDue = `
	WITH due AS (
		SELECT room_id, state, version FROM room
		 WHERE state = 'scheduled' AND opens_at <= clock_timestamp()
		 ORDER BY room_id FOR UPDATE SKIP LOCKED
	), opened AS (
		UPDATE room r SET state = 'open', updated_at = clock_timestamp(),
		       version = GREATEST(r.version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
		  FROM due WHERE r.room_id = due.room_id
		RETURNING r.room_id, due.state AS was, due.version AS was_version, r.state, r.version, r.rate_per_minute, r.cap
	), logged AS (
		INSERT INTO audit_log (actor, action, subject, detail)
		SELECT 'schedule', 'room.change', 'room:' || room_id, jsonb_build_object(
			'before', jsonb_build_object('state', was, 'ratePerMinute', rate_per_minute, 'cap', cap, 'version', was_version),
			'after', jsonb_build_object('state', state, 'ratePerMinute', rate_per_minute, 'cap', cap, 'version', version))
		  FROM opened
	)
	SELECT room_id FROM opened ORDER BY room_id`

// OpenDue opens the scheduled rooms whose opening has come, by the database's
// clock, and answers their ids; the audit log names "schedule" as the actor. Any
// number of processes may call it as often as they like: a room opens once.
func (rs *Rooms) OpenDue(ctx context.Context) ([]string, error) {
	rows, _ := rs.pool.Query(ctx, sqlOpenDue)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("booking: open rooms that are due: %w", err)
	}
	return ids, nil
}

func saveRoom(ctx context.Context, tx pgx.Tx, actor string, before Room, after *Room) error {
	err := tx.QueryRow(ctx, `
		UPDATE room SET state = $2, rate_per_minute = $3, cap = $4,
		       version = GREATEST(version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), updated_at = clock_timestamp()
		 WHERE room_id = $1
		RETURNING version, updated_at`, after.ID, after.State, after.RatePerMinute, after.Cap).
		Scan(&after.Version, &after.UpdatedAt)
	if err != nil {
		return err
	}
	after.UpdatedAt = after.UpdatedAt.UTC()
	_, err = tx.Exec(ctx, `
		INSERT INTO audit_log (actor, action, subject, detail)
		VALUES ($1, 'room.change', $2, $3)`, actor, "room:"+after.ID,
		map[string]any{"before": before.audited(), "after": after.audited()})
	return err
}

func (r Room) audited() map[string]any {
	return map[string]any{"state": r.State, "ratePerMinute": r.RatePerMinute, "cap": r.Cap, "version": r.Version}
}

// apply is the pure half of Change.
func (c RoomChange) apply(r Room) (Room, error) {
	if c.State != nil && *c.State != r.State {
		if !mayBecome(r.State, *c.State) || (c.OnlyFrom != "" && c.OnlyFrom != r.State) {
			return r, &RoomTransitionError{Room: r.ID, From: r.State, To: *c.State}
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
	return r, nil
}

// mayBecome is the operator's state machine. A closed room may open again: sales
// that were stopped in error go on, and the audit log tells.
func mayBecome(from, to string) bool {
	switch from {
	case "open":
		return to == "paused" || to == "closed"
	case "paused":
		return to == "open" || to == "closed"
	case "scheduled", "closed":
		return to == "open"
	}
	return false
}

func within(field string, got, most int) error {
	if got < 0 || got > most {
		return &RoomBoundsError{Field: field, Got: got, Min: 0, Max: most}
	}
	return nil
}
