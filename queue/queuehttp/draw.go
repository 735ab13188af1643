package queuehttp

import "usher/queue"

// drawDoc is a draw as everybody may know it. Until the drawing is done seed,
// entries, entriesDigest and drawnAt are null.
type drawDoc struct {
	Algorithm     string  `json:"algorithm"`
	Run           int     `json:"run"` // a part of the commitment
	Commitment    string  `json:"commitment"`
	PublicValue   string  `json:"publicValue"`
	Seed          *string `json:"seed"`
	Entries       *int    `json:"entries"`
	EntriesDigest *string `json:"entriesDigest"`
	DrawnAt       *string `json:"drawnAt"`
}

func describeDraw(v *queue.DrawView) *drawDoc {
	if v == nil {
		return nil
	}
	d := &drawDoc{Algorithm: queue.DrawAlgorithm, Run: v.Run, Commitment: v.Commitment, PublicValue: v.PublicValue}
	if !v.At.IsZero() {
		at := stamp(v.At)
		d.Seed, d.Entries, d.EntriesDigest, d.DrawnAt = &v.Seed, &v.Entries, &v.Digest, &at
	}
	return d
}
