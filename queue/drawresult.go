package queue

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// DrawResult is what a drawing came to.
type DrawResult struct {
	Run     int
	Digest  [32]byte // of Entries, as EntriesDigest reckons it
	Cut     int64    // highest score of the gathering, µs; 0 when nobody ever joined
	Entries []byte   // 16 bytes a place, in order of arrival
}

// Drawn is the result of a drawing in which everybody has their number, read from
// Redis and checked against its digest; ErrNotDrawn before that.
func (l *Line) Drawn(ctx context.Context, name string) (DrawResult, error) {
	r := l.own(name)
	st, run, err := l.drawState(ctx, r)
	if err != nil {
		return DrawResult{}, err
	}
	digest, err := hex.DecodeString(st["drawdigest"])
	if st["draw"] != "done" || err != nil || len(digest) != 32 {
		return DrawResult{}, ErrNotDrawn
	}
	res := DrawResult{Run: run, Digest: [32]byte(digest), Cut: st.number("cut")}
	err = l.eachPiece(ctx, r, int(st.number("drawn")), func(piece []byte) error {
		res.Entries = append(res.Entries, piece...)
		return nil
	})
	if err != nil {
		return DrawResult{}, err
	}
	if EntriesDigest(res.Entries) != res.Digest { // a reset between the two reads, or somebody wrote into the list
		return DrawResult{}, fmt.Errorf("%w: the list of room %s is not the one that was drawn", ErrStale, name)
	}
	return res, nil
}

// drawState are the fields of the state that a drawing uses, and the room's run.
func (l *Line) drawState(ctx context.Context, r *room) (fields, int, error) {
	names := []string{"draw", "drawdigest", "drawn", "cut"}
	var state *redis.SliceCmd
	var run *redis.StringCmd
	_, err := l.rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		state, run = tx.HMGet(ctx, r.keys[kState], names...), tx.HGet(ctx, r.keys[kSettings], "run")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, 0, storeError("read draw", err)
	}
	st := fields{}
	for i, v := range state.Val() {
		st[names[i]], _ = v.(string)
	}
	return st, int(parseScore(run.Val())), nil
}

// KeepsEntries reports whether Redis has the draw's list, and all numbers by it.
func (l *Line) KeepsEntries(ctx context.Context, name string, digest [32]byte, entries int) (bool, error) {
	r := l.own(name)
	st, _, err := l.drawState(ctx, r)
	if err != nil {
		return false, err
	}
	size, err := l.rdb.StrLen(ctx, r.keys[kEntries]).Result()
	if err != nil {
		return false, storeError("read entries", err)
	}
	there := st["draw"] == "scores" || st["draw"] == "done"
	return there && st["drawdigest"] == hex.EncodeToString(digest[:]) && size == int64(entries)*entryBytes, nil
}

// PutEntries puts the list of a draw back into a Redis that lost it; the settings,
// with the draw's outcome, must have been shipped. The edges then give those who
// stand in line their drawn numbers again.
func (l *Line) PutEntries(ctx context.Context, name string, d DrawResult) error {
	r := l.own(name)
	for offset, last := 0, -1; ; {
		piece := d.Entries[offset:min(offset+entriesPiece, len(d.Entries))]
		reply, err := l.run(ctx, entriesScript, r.keys, d.Run, hex.EncodeToString(d.Digest[:]), d.Cut, len(d.Entries), offset, piece)
		if err != nil {
			return err
		}
		have, ok := reply.(int64)
		switch {
		case !ok:
			return fmt.Errorf("queue: entries: the reply is %T", reply)
		case have < 0 || have >= int64(len(d.Entries)):
			return nil
		case int(have) == last:
			return fmt.Errorf("queue: entries: room %s takes no more than %d bytes", name, have)
		}
		last, offset = offset, int(have)
	}
}

// Entries are the places that took part in the room's draw, at most `most` from
// index `from` on, 16 bytes each; total is how many there are. ErrNotDrawn before
// the drawing is done, ErrUnknownRoom, ErrStale while Redis does not have the list.
func (l *Line) Entries(ctx context.Context, name string, from, most int) (entries []byte, total int, err error) {
	r, b, err := l.room(ctx, name)
	switch {
	case err != nil:
		return nil, 0, err
	case b.view.Draw == nil || b.view.Draw.At.IsZero():
		return nil, 0, ErrNotDrawn
	}
	total = b.view.Draw.Entries
	if from >= total {
		return nil, total, nil
	}
	want := min(most, total-from)
	// Everybody asks for the same parts at the same time: one reading serves them. No
	// room's name holds a slash.
	entries, err = shared(ctx, &l.once, fmt.Sprintf("entries/%s/%d/%d/%d", name, b.view.Run, from, want), func(ctx context.Context) ([]byte, error) {
		return l.readEntries(ctx, r, from, want)
	})
	if err == nil && len(entries) != want*entryBytes {
		return nil, total, fmt.Errorf("%w: the list of room %s is being put back", ErrStale, name)
	}
	return slices.Clip(entries), total, err
}
