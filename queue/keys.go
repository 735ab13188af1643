package queue

// roomsKey is the set of the names of all rooms; the only key without a room's
// hash tag, so it is never used inside a script.
const roomsKey = "usher:rooms"

// The structures of a room, in the order every script receives them as KEYS
// (lua/head.lua names them). All bear the hash tag {room}: one slot, one step.
var roomKeys = [...]string{
	"settings", // HASH   the operator's settings
	"state",    // HASH   last score, watermark, GCRA, report, no-show shares, counters
	"wait",     // ZSET   member → score (µs); the line
	"called",   // ZSET   member → score; invited, standing by included
	"due",      // ZSET   member → end of the claim window (µs); absent while standing by
	"standby",  // ZSET   member → score; called, has claimed, gets the next slot
	"inside",   // ZSET   member → end of the lease (µs)
	"slots",    // HASH   member → jti|granted|expires|score|renewals, and |1 once booking has told of the visit
	"gone",     // ZSET   member → score of the place that was left; bounded
	"missed",   // ZSET   member → score to give back after one missed call or unused pass; bounded
	"restored", // ZSET   member → score that was given back once; bounded
	"priority", // ZSET   member → score; the line beside the line, with a share of the calls
	"entries",  // STRING the members that took part in the draw, 16 bytes each, as they were read
	"revoked",  // HASH   what was revoked → instant (µs); shipped by the bridge
	"moves",    // HASH   digest of a move code → the place it moves; bounded, short-lived
	"invites",  // HASH   invite id → places taken from its quota
	"served",   // HASH   member → when its last visit began or its place was over (µs), 0 while it was put back; only in a memory that forgot
	"turns",    // HASH   member of the priority line, once called → score that orders it among those standing by
	"edges",    // HASH   m:edge → its mark in this memory, a:edge → when it looked last (s)
}

// Positions of single keys in what keysOf returns, for reads outside scripts.
const (
	kSettings = iota
	kState
	kWait
	kCalled
	kDue
	kStandby
	kInside
	kSlots
	kGone
	kMissed
	kRestored
	kPriority
	kEntries
	kRevoked
	kMoves
	kInvites
	kServed
	kTurns
	kEdges
)

// keysOf makes all key names of a room. Nothing else makes key names, but for the
// short-lived ones of package limits: usher:{room}:limit:… and usher:{room}:proof:….
func keysOf(room string) []string {
	keys := make([]string, len(roomKeys))
	for i, k := range roomKeys {
		keys[i] = "usher:{" + room + "}:" + k
	}
	return keys
}
