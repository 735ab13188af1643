package limits

import (
	_ "embed"
	"encoding/binary"
	"math"
	"time"
)

// Lua defines toll(now, first, blob, again), to stand in front of the script that calls it.
//
//go:embed toll.lua
var Lua string

// Toll is what a new place costs whoever joins.
type Toll struct {
	Rates   Rates
	Calm    Calm
	Address string  // of the caller, as the edge tells; "" counts for no address
	Least   float64 // pressure there is at least; 1: a proof is always needed

	// What the caller paid with, checked already: "" for nothing.
	Mark     string        // of the proof or the wait ticket; taken once
	MarkLife time.Duration // how long it must be remembered: until it is invalid by itself
	Covers   float64       // the pressure it pays for
	Waited   bool          // by waiting, so that PerWaiter counts
}

// bucket is one key with its hard and its calm rate.
type bucket struct {
	name, key  string
	hard, calm Rate
}

// Charge is a Toll made ready for a script: keys to stand behind the verb's own,
// and the blob to stand last among its arguments.
type Charge struct {
	Keys    []string
	Blob    []byte
	buckets []bucket
}

// For makes the charge of one fan in one room; fan is a digest, never the id itself.
func (t *Toll) For(room, fan string) Charge {
	address, block := Blocks(t.Address)
	list := make([]bucket, 0, 5)
	add := func(name, who string, hard, calm Rate) {
		if hard.PerMinute > 0 || calm.PerMinute > 0 {
			list = append(list, bucket{name: name, key: limitKey(room, name, who), hard: hard, calm: calm})
		}
	}
	if fan != "" {
		add(Fan, fan, t.Rates.PerFan, Rate{}) // the first one: newcomers do not pay for this key
	}
	personal := len(list) > 0
	if address != "" {
		add(Address, address, t.Rates.PerAddress, t.Calm.PerAddress)
		add(Block, block, t.Rates.PerBlock, t.Calm.PerBlock)
		if t.Waited {
			add(Waiter, address, t.Rates.PerWaiter, Rate{})
		}
	}
	// The room's always: by its keys the script knows that there is a toll.
	list = append(list, bucket{name: Room, key: limitKey(room, Room, ""), hard: t.Rates.PerRoom, calm: t.Calm.PerRoom})
	mark := ""
	if t.Mark != "" {
		mark = markKey(room, t.Mark)
	}
	return charge(list, mark, t.MarkLife, t.Covers, t.Least, personal)
}

func charge(list []bucket, mark string, life time.Duration, covers, least float64, personal bool) Charge {
	c := Charge{Keys: make([]string, 0, len(list)+1), Blob: make([]byte, 0, 40+32*len(list)), buckets: list}
	marked, again := 0.0, 0.0
	if mark != "" {
		c.Keys, marked = append(c.Keys, mark), 1
	}
	if personal {
		again = 1
	}
	c.number(marked, float64(life.Microseconds()), covers, least, again)
	for _, b := range list {
		c.Keys = append(c.Keys, b.key)
		c.number(b.hard.spacing(), b.hard.depth(), b.calm.spacing(), b.calm.freeDepth())
	}
	return c
}

func (c *Charge) number(values ...float64) {
	for _, v := range values {
		c.Blob = binary.BigEndian.AppendUint64(c.Blob, math.Float64bits(v))
	}
}

// Bucket is the name of the i-th bucket, counted from 1 as the script answers.
func (c *Charge) Bucket(i int) string {
	if i < 1 || i > len(c.buckets) {
		return "?"
	}
	return c.buckets[i-1].name
}
