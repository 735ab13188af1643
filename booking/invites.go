package booking

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// InviteNote is what the audit log keeps of an invite: never the link itself, for
// whoever has that has the places.
type InviteNote struct {
	ID        string
	Kind      string // bypass, priority
	Actor     string
	Quota     int
	CreatedAt time.Time
	ExpiresAt time.Time
}

const (
	actionInvite = "room.invite"

	sqlInvites = `
		SELECT detail ->> 'inviteId', COALESCE(detail ->> 'kind', 'bypass'), actor, (detail ->> 'quota')::int, at, (detail ->> 'expiresAt')::timestamptz
		  FROM audit_log WHERE action = 'room.invite' AND subject = 'room:' || $1::text ORDER BY audit_id DESC LIMIT $2`
)

// NoteInvite writes down that an operator made an invite for a room; ErrUnknownRoom.
// The line keeps the count of its places.
func (rs *Rooms) NoteInvite(ctx context.Context, room string, n InviteNote) error {
	return InTx(ctx, rs.pool, func(tx pgx.Tx) error {
		if err := knownRoom(ctx, tx, room); err != nil {
			return err
		}
		detail := map[string]any{"inviteId": n.ID, "kind": n.Kind, "quota": n.Quota, "expiresAt": n.ExpiresAt.UTC().Format(time.RFC3339)}
		if _, err := tx.Exec(ctx, sqlAudit, n.Actor, actionInvite, "room:"+room, detail); err != nil {
			return fmt.Errorf("booking: note invite: %w", err)
		}
		return nil
	})
}

// Invites are a room's invites, the newest first, at most limit; ErrUnknownRoom.
func (rs *Rooms) Invites(ctx context.Context, room string, limit int) ([]InviteNote, error) {
	if _, err := rs.Get(ctx, room); err != nil {
		return nil, err
	}
	rows, _ := rs.pool.Query(ctx, sqlInvites, room, limit)
	notes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n InviteNote, err error) {
		err = row.Scan(&n.ID, &n.Kind, &n.Actor, &n.Quota, &n.CreatedAt, &n.ExpiresAt)
		n.CreatedAt, n.ExpiresAt = n.CreatedAt.UTC(), n.ExpiresAt.UTC()
		return n, err
	})
	if err != nil {
		return nil, fmt.Errorf("booking: list invites: %w", err)
	}
	return notes, nil
}
