package app

import (
	"usher/booking"
	"usher/queue"
)

// drawSettings are what the line is told of a room's draw. The seed is a secret
// until the drawing has begun: Redis is read by more people than the database is.
func drawSettings(r booking.Room) queue.DrawSettings {
	if r.Mode != "draw" && r.Draw.At.IsZero() {
		return queue.DrawSettings{}
	}
	d := queue.DrawSettings{
		Commitment: queue.DrawCommitment(r.ID, r.Run, r.Draw.Seed[:]), PublicValue: r.Draw.PublicValue,
		Digest: r.Draw.Digest, Entries: r.Draw.Entries, Cut: r.Draw.Cut, At: r.Draw.At,
	}
	if r.State == "drawing" || !r.Draw.At.IsZero() {
		d.Seed = r.Draw.Seed[:]
	}
	return d
}
