package booking

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// MaxPublicValue bounds the public value of a draw, in characters.
const MaxPublicValue = 200

// DrawSeed is the secret of a draw. It prints as nothing of itself: a room that
// reaches a log must not tell the order of a draw to come.
type DrawSeed [32]byte

// Format keeps every verb of fmt from the bytes.
func (DrawSeed) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "(secret)") }

// MarshalText keeps encoding/json and slog from the bytes.
func (DrawSeed) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Draw is what a room's row knows of its draw. Before the drawing is done At is
// zero, and so are Digest, Entries and Cut.
type Draw struct {
	Seed        DrawSeed
	PublicValue string   // mixed in, and announced before the drawing; may be ""
	Digest      [32]byte // SHA-256 of the entries, as they are published
	Entries     int
	Cut         int64 // highest score of the gathering, µs
	At          time.Time
}

// DrawResult is what the line reports when everybody has their number.
type DrawResult struct {
	Run     int
	Digest  [32]byte
	Cut     int64
	Entries []byte // 16 bytes a place, in order of arrival
}

// PublicValueError refuses a public value.
type PublicValueError struct{ Why string }

func (e *PublicValueError) Error() string { return "booking: public value: " + e.Why }

// publicValue is v as it is kept and mixed in.
func publicValue(v string) (string, error) {
	v = strings.TrimSpace(v)
	switch {
	case !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl):
		return "", &PublicValueError{"it must be text of one line"}
	case utf8.RuneCountInString(v) > MaxPublicValue:
		return "", &PublicValueError{fmt.Sprintf("it has more than %d characters", MaxPublicValue)}
	}
	return v, nil
}

// entriesPerRow is how many places of a draw one row keeps.
const entriesPerRow = 100_000

const placeBytes = 16

const (
	sqlPutDrawEntries = `
		INSERT INTO draw_entries (room_id, run, chunk, places) VALUES ($1, $2, $3, $4)
		ON CONFLICT (room_id, run, chunk) DO UPDATE SET places = $4`
	sqlDrawEntries = `SELECT places FROM draw_entries WHERE room_id = $1 AND run = $2 ORDER BY chunk`
	sqlFinishDraw  = `
		UPDATE room SET state = 'open', draw_digest = $2, draw_entries = $3, draw_cut = $4, drawn_at = clock_timestamp(),
		       version = GREATEST(version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), updated_at = clock_timestamp()
		 WHERE room_id = $1`
)

// ErrDrawOutdated says that a draw's result is of an earlier run, or comes after
// another result was kept: it must be read again.
var ErrDrawOutdated = errors.New("booking: the result is not of the drawing under way")

// FinishDraw opens a room whose drawing the line has done, and keeps who took
// part, in one transaction; the audit log names "line" as the actor. Every booking
// process may report the same result: the first is kept, the others get the room as
// it is. Errors: ErrUnknownRoom, ErrDrawOutdated, *RoomTransitionError for a room
// that is not being drawn.
func (rs *Rooms) FinishDraw(ctx context.Context, id string, d DrawResult) (Room, error) {
	var after Room
	err := InTx(ctx, rs.pool, func(tx pgx.Tx) error {
		before, err := getRoom(ctx, tx, id, "FOR UPDATE")
		switch {
		case err != nil:
			return err
		case before.Run != d.Run, len(d.Entries)%placeBytes != 0:
			return ErrDrawOutdated
		case !before.Draw.At.IsZero():
			if after = before; before.Draw.Digest != d.Digest {
				return ErrDrawOutdated
			}
			return nil
		case before.State != "drawing":
			return &RoomTransitionError{Room: id, From: before.State, To: "open"}
		}
		if err := putEntries(ctx, tx, id, d); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlFinishDraw, id, d.Digest[:], len(d.Entries)/placeBytes, d.Cut); err != nil {
			return err
		}
		if after, err = getRoom(ctx, tx, id, ""); err != nil {
			return err
		}
		return auditRoom(ctx, tx, "line", before, after)
	})
	if err != nil {
		return Room{}, fmt.Errorf("booking: finish draw: %w", err)
	}
	return after, nil
}

func putEntries(ctx context.Context, tx pgx.Tx, id string, d DrawResult) error {
	rest := d.Entries
	for chunk := 0; len(rest) > 0; chunk++ {
		n := min(len(rest), entriesPerRow*placeBytes)
		if _, err := tx.Exec(ctx, sqlPutDrawEntries, id, d.Run, chunk, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// DrawEntries are the places that took part in the draw of a room's run, 16 bytes
// each, in order of arrival; none when there was no draw.
func (rs *Rooms) DrawEntries(ctx context.Context, id string, run int) ([]byte, error) {
	rows, _ := rs.pool.Query(ctx, sqlDrawEntries, id, run)
	chunks, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("booking: draw entries: %w", err)
	}
	return bytes.Join(chunks, nil), nil
}
