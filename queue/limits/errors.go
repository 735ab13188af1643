package limits

import (
	"errors"
	"fmt"
	"time"
)

// RefusedError: a bucket is full. Nothing was charged.
type RefusedError struct {
	Bucket     string        // fan, address, block, room, waiter, or the name given to Allow
	RetryAfter time.Duration // until it has room for one; > 0
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("limits: too much for the %s, try again in %s", e.Bucket, e.RetryAfter)
}

// ProofError: the join needs a proof of work, or a better one. Nothing was charged.
type ProofError struct {
	Pressure float64 // ≥ 1: how many times over its free places the fullest bucket is
}

func (e *ProofError) Error() string {
	return fmt.Sprintf("limits: a proof of work is needed at pressure %.1f", e.Pressure)
}

// ErrUsed: the proof or the wait ticket was accepted before.
var ErrUsed = errors.New("limits: the proof was used before")
