package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

const (
	collectBound = 1000        // places that one step reads
	scoreBound   = 250         // places that one step gives their number
	drawGone     = 2000        // former places kept through a drawing, as many as boards ship
	drawBudget   = time.Second // of one room in one turn; the next turn goes on
	entriesPiece = 1 << 20     // bytes of the list in one command
	drawTimeout  = time.Minute // of one room in one turn: the digest of a huge list is one step
)

// ErrNotDrawn: the room has no draw, or it is not done.
var ErrNotDrawn = errors.New("queue: the room has not been drawn")

// drawAll goes on with every drawing.
func (l *Line) drawAll(ctx context.Context) error { return l.draws.Run(ctx, l.allRooms(), l.drawOn) }

// drawOn takes the steps of a room's drawing until it is done or the turn's time is
// over. Each edge does, none is special: a step counts only at the cursor where it
// was read, so edges that work at once lose some work, and one that stops in the
// middle loses nothing.
func (l *Line) drawOn(ctx context.Context, r *room) error {
	b := r.board.Load()
	if b == nil || !b.draw.pending || len(b.draw.seed) == 0 {
		return nil
	}
	work := drawWork{l: l, r: r, b: b}
	args := []any{""}
	for start := time.Now(); time.Since(start) < drawBudget; {
		reply, err := l.runList(ctx, drawScript, r.keys, append([]any{b.view.Run, collectBound, drawGone, l.witness(r)}, args...)...)
		if err != nil {
			return err
		}
		switch text(reply, 0) {
		case "collect":
			args = []any{""}
		case "digest":
			args, err = work.digest(ctx, int(number(reply, 2)))
		case "scores":
			args, err = work.scores(ctx, int(number(reply, 1)), int(number(reply, 2)), text(reply, 4))
		case "done":
			return l.refresh(ctx, r)
		default:
			return nil // nothing to do, or nothing that an edge can do
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drawWork reckons what the script cannot.
type drawWork struct {
	l      *Line
	r      *room
	b      *board
	drawer *Drawer
	piece  []byte // of the list, read ahead
	from   int    // index of its first place
}

func (w *drawWork) digest(ctx context.Context, n int) ([]any, error) {
	h := sha256.New()
	err := w.l.eachPiece(ctx, w.r, n, func(piece []byte) error { return WriteEntries(h, piece) })
	if err != nil {
		return nil, err
	}
	return []any{"digest", hex.EncodeToString(h.Sum(nil))}, nil
}

// scores are those of the places from index at on.
func (w *drawWork) scores(ctx context.Context, at, n int, digest string) ([]any, error) {
	if w.drawer == nil {
		sum, err := hex.DecodeString(digest)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("queue: draw: %q is no digest", digest)
		}
		w.drawer = NewDrawer(w.b.draw.seed, [32]byte(sum), w.b.draw.publicValue)
	}
	count := min(scoreBound, n-at)
	if at < w.from || (at+count-w.from)*entryBytes > len(w.piece) {
		piece, err := w.l.readEntries(ctx, w.r, at, entriesPiece/entryBytes)
		if err != nil {
			return nil, err
		}
		w.piece, w.from = piece, at
		if len(piece) < count*entryBytes {
			return nil, fmt.Errorf("queue: draw: the list of room %s ends after %d of %d places", w.r.name, at+len(piece)/entryBytes, n)
		}
	}
	args := make([]any, 0, 2+count)
	args = append(args, "scores", at)
	for rest := w.piece[(at-w.from)*entryBytes:][:count*entryBytes]; len(rest) > 0; rest = rest[entryBytes:] {
		args = append(args, w.drawer.Score([16]byte(rest)))
	}
	return args, nil
}

// readEntries is a part of the list, from a place's index on; shorter at its end.
func (l *Line) readEntries(ctx context.Context, r *room, from, count int) ([]byte, error) {
	piece, err := l.rdb.GetRange(ctx, r.keys[kEntries], int64(from)*entryBytes, int64(from+count)*entryBytes-1).Result()
	if err != nil {
		return nil, storeError("read entries", err)
	}
	return []byte(piece), nil
}

// eachPiece hands on the n places of the list, in pieces that keep Redis from nothing else.
func (l *Line) eachPiece(ctx context.Context, r *room, n int, use func(piece []byte) error) error {
	const step = entriesPiece / entryBytes
	for from := 0; from < n; from += step {
		want := min(step, n-from)
		piece, err := l.readEntries(ctx, r, from, want)
		if err != nil {
			return err
		}
		if len(piece) != want*entryBytes {
			return fmt.Errorf("%w: the list of room %s is not whole", ErrStale, r.name)
		}
		if err := use(piece); err != nil {
			return err
		}
	}
	return nil
}
