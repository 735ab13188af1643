package booking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// SQLRevokedVisit is true when the visit (alias v: room_id, customer_id, place_id,
// jti, granted_at, created_at) is revoked at the statement's snapshot. take.sql has
// the same words; package payment asks by these.
const SQLRevokedVisit = `EXISTS (SELECT FROM revocation x
	 WHERE x.lifted_at IS NULL
	   AND (x.kind || ':' || x.subject) = ANY (ARRAY['everybody:', 'customer:' || v.customer_id, 'place:' || v.place_id, 'pass:' || v.jti])
	   AND (x.room_id IS NULL OR x.room_id = v.room_id)
	   AND (x.kind <> 'everybody' OR COALESCE(v.granted_at, v.created_at) < x.granted_before))`

const (
	// The advisory lock between those who sell and those who revoke: takes and confirms
	// share it until their commit, a revocation has it alone at its own. So a step is
	// either committed before the revocation is, or its statements see the revocation:
	// there is no third.
	// SQLFenceOut waits for them; only who revokes takes it. Both numbers are "usher" in ASCII and a 2.
	sqlFence    = `SELECT pg_advisory_xact_lock_shared(129138533167618)`
	SQLFenceOut = `SELECT pg_advisory_xact_lock(129138533167618)`

	sqlCountRevoked = `SELECT count(*) FROM revocation
	                    WHERE lifted_at IS NULL AND kind <> 'everybody' AND (room_id IS NULL OR $1 = '' OR room_id = $1)`
	sqlRevoke = `
		INSERT INTO revocation (revocation_id, room_id, kind, subject, granted_before, actor, reason)
		SELECT $1, NULLIF($2, ''), r.kind, r.subject,
		       CASE WHEN r.kind = 'everybody' THEN COALESCE($5::timestamptz, clock_timestamp()) END, $6, $7
		  FROM unnest($3::text[], $4::text[]) AS r(kind, subject)`
	sqlInFuture        = `SELECT $1::timestamptz > clock_timestamp()`
	sqlRaiseRevocation = `
		UPDATE room SET revocation_version = GREATEST(revocation_version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
		 WHERE $1 = '' OR room_id = $1`
	sqlLift = `
		UPDATE revocation SET lifted_at = clock_timestamp(), lifted_by = $3
		 WHERE revocation_id = $1 AND lifted_at IS NULL AND room_id IS NOT DISTINCT FROM NULLIF($2, '')`
	sqlAudit = `INSERT INTO audit_log (actor, action, subject, detail) VALUES ($1, $2, $3, $4)`
)

// ErrUnknownRevocation: there is no such order in force in that room.
var ErrUnknownRevocation = errors.New("booking: no such revocation in force")

// FenceTx keeps every revocation from committing until tx has ended; statements after
// it see those that have. Call it before any row is locked: who revokes waits for
// nobody but those who passed here.
func FenceTx(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, sqlFence); err != nil {
		return fmt.Errorf("booking: fence: %w", err)
	}
	return nil
}

// Revoke puts an order in force: from its commit on no statement takes or confirms for
// whom it names, in this process or any other. It answers the order's id. Sessions
// end and holds are released at once by this process and within half a second by any
// other. What is CONFIRMED stays: giving that back is the box office's to order.
//
// Errors: *RevocationError, ErrUnknownRoom.
func (o *Office) Revoke(ctx context.Context, actor string, r Revocation) (id string, err error) {
	if err := r.validate(); err != nil {
		return "", err
	}
	key, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("booking: revoke: %w", err)
	}
	err = InTx(ctx, o.pool, func(tx pgx.Tx) error { return revokeTx(ctx, tx, o.fenceWait, actor, key.String(), r) })
	if err != nil {
		return "", err
	}
	o.obey(ctx)
	return key.String(), nil
}

func revokeTx(ctx context.Context, tx pgx.Tx, fenceWait, actor, id string, r Revocation) error {
	if err := knownRoom(ctx, tx, r.Room); err != nil {
		return err
	}
	var before *time.Time
	if r.EverybodyBefore != nil && !r.EverybodyBefore.IsZero() {
		before = r.EverybodyBefore
		var future bool
		if err := tx.QueryRow(ctx, sqlInFuture, before).Scan(&future); err != nil {
			return fmt.Errorf("booking: revoke: %w", err)
		}
		if future {
			return badRevocation("%s is not over yet; it would shut out those who come until then", before.Format(time.RFC3339))
		}
	}
	if err := fenceOut(ctx, tx, fenceWait); err != nil {
		return err
	}
	kinds, subjects := r.subjects()
	var inForce int
	if err := tx.QueryRow(ctx, sqlCountRevoked, r.Room).Scan(&inForce); err != nil {
		return fmt.Errorf("booking: revoke: %w", err)
	}
	if inForce+len(kinds) > MaxRevoked+1 { // and one for everybody
		return badRevocation("%d are in force there, with these it were more than %d; lift old ones, or revoke everybody before an instant", inForce, MaxRevoked)
	}
	if _, err := tx.Exec(ctx, sqlRevoke, id, r.Room, kinds, subjects, before, actor, r.Reason); err != nil {
		return fmt.Errorf("booking: revoke: %w", err)
	}
	detail := map[string]any{
		"revocationId": id, "customers": len(r.Customers), "places": len(r.Places), "passes": len(r.Passes),
		"everybody": r.EverybodyBefore != nil, "everybodyBefore": before, "reason": r.Reason,
	}
	return noteRevocation(ctx, tx, actor, "room.revoke", r.Room, detail)
}

// fenceOut waits until nobody sells, for a moment. Should a transaction be stuck, the
// revocation does not wait for it: it is in force for everybody else, and the stuck
// one ends by its own time limit.
func fenceOut(ctx context.Context, tx pgx.Tx, wait string) error {
	part, err := tx.Begin(ctx) // a savepoint: a lock timeout undoes no more
	if err != nil {
		return fmt.Errorf("booking: fence: %w", err)
	}
	if _, err = part.Exec(ctx, `SELECT set_config('lock_timeout', $1, true)`, wait); err == nil {
		if _, err = part.Exec(ctx, SQLFenceOut); err == nil {
			_, err = part.Exec(ctx, `SET LOCAL lock_timeout = '5s'`)
		}
	}
	if sqlState(err) == "55P03" { // lock_not_available
		return part.Rollback(ctx)
	}
	if err != nil {
		return fmt.Errorf("booking: fence: %w", err)
	}
	return part.Commit(ctx)
}

// noteRevocation raises the version and writes the audit line.
func noteRevocation(ctx context.Context, tx pgx.Tx, actor, action, room string, detail map[string]any) error {
	if _, err := tx.Exec(ctx, sqlRaiseRevocation, room); err != nil {
		return fmt.Errorf("booking: revocation version: %w", err)
	}
	subject := "room:" + room
	if room == "" {
		subject = "room:*"
	}
	if _, err := tx.Exec(ctx, sqlAudit, actor, action, subject, detail); err != nil {
		return fmt.Errorf("booking: audit: %w", err)
	}
	return nil
}

func knownRoom(ctx context.Context, tx pgx.Tx, room string) error {
	if room == "" {
		return nil
	}
	_, err := getRoom(ctx, tx, room, "")
	return err
}

// Lift takes an order back; sessions it ended stay ended, and whoever has a place or
// a good pass may come in again. The line has given the slot of such a pass to the next
// fan meanwhile: lifted within the life of its passes, an order costs so many visits
// above the cap, which the line counts, and admits nobody until they are over.
// ErrUnknownRevocation when it is not in force in that
// room, ErrUnknownRoom.
func (o *Office) Lift(ctx context.Context, actor, room, id string) error {
	key, err := uuid.Parse(id)
	if err != nil {
		return ErrUnknownRevocation
	}
	err = InTx(ctx, o.pool, func(tx pgx.Tx) error {
		if err := knownRoom(ctx, tx, room); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sqlLift, key.String(), room, actor)
		if err != nil {
			return fmt.Errorf("booking: lift: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return ErrUnknownRevocation
		}
		return noteRevocation(ctx, tx, actor, "room.revoke.lift", room, map[string]any{"revocationId": key.String(), "rows": tag.RowsAffected()})
	})
	if err != nil {
		return err
	}
	o.obey(ctx)
	return nil
}

// RevocationOrder is one order as an operator reads it.
type RevocationOrder struct {
	ID, Room, Actor, Reason   string // Room "": every room
	CreatedAt                 time.Time
	LiftedAt                  time.Time // zero while in force
	LiftedBy                  string
	Customers, Places, Passes int
	EverybodyBefore           time.Time // zero: not everybody
	Subjects                  []string  // kind:id, the first hundred
}

const sqlRevocations = `
	SELECT revocation_id::text, COALESCE(room_id, ''), actor, reason, min(created_at), max(lifted_at), COALESCE(max(lifted_by), ''),
	       count(*) FILTER (WHERE kind = 'customer'), count(*) FILTER (WHERE kind = 'place'), count(*) FILTER (WHERE kind = 'pass'),
	       max(granted_before),
	       COALESCE((array_agg(kind || ':' || subject ORDER BY kind, subject) FILTER (WHERE kind <> 'everybody'))[1:100], '{}')
	  FROM revocation WHERE room_id = $1 OR room_id IS NULL
	 GROUP BY revocation_id, room_id, actor, reason ORDER BY min(created_at) DESC LIMIT $2`

// Revocations are the orders of a room and those for every room, the newest first, at
// most limit; lifted ones too. ErrUnknownRoom.
func (o *Office) Revocations(ctx context.Context, room string, limit int) ([]RevocationOrder, error) {
	if _, err := o.Rooms().Get(ctx, room); err != nil {
		return nil, err
	}
	rows, _ := o.pool.Query(ctx, sqlRevocations, room, limit)
	orders, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (RevocationOrder, error) {
		var r RevocationOrder
		var lifted, before *time.Time
		err := row.Scan(&r.ID, &r.Room, &r.Actor, &r.Reason, &r.CreatedAt, &lifted, &r.LiftedBy,
			&r.Customers, &r.Places, &r.Passes, &before, &r.Subjects)
		if lifted != nil {
			r.LiftedAt = lifted.UTC()
		}
		if before != nil {
			r.EverybodyBefore = before.UTC()
		}
		r.CreatedAt = r.CreatedAt.UTC()
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("booking: list revocations: %w", err)
	}
	return orders, nil
}
