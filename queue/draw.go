package queue

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
)

// The draw, as functions of what is published; doc.go says what they prove. Nothing
// here reads or writes anything, so that who checks a draw runs the code that made it.

// DrawAlgorithm names how a draw is made; another way will have another name.
const DrawAlgorithm = "usher-draw-1"

// drawnScores is one above the highest score that a draw gives: such scores lie
// below every time of arrival.
const drawnScores = 1 << 50

const entryBytes = 16 // of a member in a list of entries

// DrawCommitment is what is published before anybody can join: the SHA-256 of four
// lines, each ended by \n: the algorithm, the room, its run, the seed in hex. In hex.
func DrawCommitment(room string, run int, seed []byte) string {
	sum := sha256.Sum256([]byte(DrawAlgorithm + "\n" + room + "\n" + strconv.Itoa(run) + "\n" + hex.EncodeToString(seed) + "\n"))
	return hex.EncodeToString(sum[:])
}

// WriteEntries writes a list of entries (16 bytes each) as it is published: the
// places' ids in hex, each ended by \n, in order of arrival.
func WriteEntries(w io.Writer, entries []byte) error {
	var line [2*entryBytes + 1]byte
	line[2*entryBytes] = '\n'
	for len(entries) >= entryBytes {
		hex.Encode(line[:], entries[:entryBytes])
		entries = entries[entryBytes:]
		if _, err := w.Write(line[:]); err != nil {
			return fmt.Errorf("queue: write entries: %w", err)
		}
	}
	return nil
}

// EntriesDigest is the SHA-256 of the list as it is published.
func EntriesDigest(entries []byte) [32]byte {
	h := sha256.New()
	_ = WriteEntries(h, entries) // a hash never fails
	return [32]byte(h.Sum(nil))
}

// A Drawer gives the score of a place in one draw. It is not safe for concurrent use.
type Drawer struct{ mac hash.Hash }

// DrawKey is HMAC-SHA256(seed, digest ‖ public value): the order follows from it. It is
// published beside what it is made of, so that whoever changes one of them is found out.
func DrawKey(seed []byte, digest [32]byte, publicValue string) []byte {
	m := hmac.New(sha256.New, seed)
	m.Write(digest[:])
	m.Write([]byte(publicValue))
	return m.Sum(nil)
}

// NewDrawer prepares the scores of a draw.
func NewDrawer(seed []byte, digest [32]byte, publicValue string) *Drawer {
	return &Drawer{mac: hmac.New(sha256.New, DrawKey(seed, digest, publicValue))}
}

// Score is the first 50 bits of HMAC-SHA256(key, place): the order of the line.
// Equal scores are ordered by the place's bytes.
func (d *Drawer) Score(place [16]byte) int64 {
	d.mac.Reset()
	d.mac.Write(place[:])
	var sum [sha256.Size]byte
	d.mac.Sum(sum[:0])
	return int64(binary.BigEndian.Uint64(sum[:]) >> 14)
}

// Ranked is one place in the order that was drawn.
type Ranked struct {
	Place [16]byte
	Score int64
}

// Rank is the drawn order of a list of entries, first to be called first.
func (d *Drawer) Rank(entries []byte) []Ranked {
	out := make([]Ranked, 0, len(entries)/entryBytes)
	for ; len(entries) >= entryBytes; entries = entries[entryBytes:] {
		place := [16]byte(entries)
		out = append(out, Ranked{Place: place, Score: d.Score(place)})
	}
	slices.SortFunc(out, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), bytes.Compare(a.Place[:], b.Place[:]))
	})
	return out
}
