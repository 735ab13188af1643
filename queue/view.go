package queue

import "time"

// Status is where a place stands.
type Status string

// The states of a place; DESIGN's words, used in JSON as they are.
const (
	Waiting  Status = "waiting"
	Called   Status = "called"
	Admitted Status = "admitted"
	Left     Status = "left"
	Expired  Status = "expired"
)

// ETA is an honest range for the wait.
type ETA struct {
	Low, High time.Duration
}

// View is what a fan may know about their place.
type View struct {
	PlaceID string // 32 hex digits; worth nothing by itself
	Token   Token  // the signed place; whoever holds it is the fan
	Status  Status
	// Position counts from 1 (next to be called); 0 when not waiting, and before the
	// order is drawn.
	Position, Ahead int
	Waiting         int           // fans waiting in the room, in both lines
	ETA             *ETA          // nil when it is not known
	PollAfter       time.Duration // when to ask again, jittered
	CalledUntil     time.Time     // end of the claim window; zero unless called with the window running
	StandingBy      bool          // called, has claimed, a slot comes in a moment
	Undrawn         bool          // waiting, and the order is still to be drawn
	Invited         bool          // ahead of the line by an invite
	Priority        bool          // in the priority line by an invite; Position and Ahead are of that line
	Revoked         bool          // with Expired: by the operator; joining again is refused
	Moved           bool          // with Left: the place is another browser's now
	Created         bool          // Join only: this call made the place
	Kept            bool          // Move only: the code serves again
	Bound           bool          // passes of this place are bound to the joining browser
	Room            RoomView
}

// RoomView is what everybody may know about a room.
type RoomView struct {
	Room, Title   string
	Mode, State   string
	RatePerMinute int
	Cap           int
	Valve         Valve     // what of them is in force
	Waiting       int       // in both lines, not called
	Priority      int       // of them, in the priority line
	PriorityShare int       // percent of the calls that go to it while both lines wait
	Called        int       // invited, standing by included
	StandingBy    int       // of the called, those who claimed and get the next slots
	Inside        int       // slots taken
	Admitted      int64     // admissions since the room began
	OpensAt       time.Time // zero when there is no schedule
	GathersAt     time.Time // when places are given, of a room that is drawn; zero without
	Timezone      string    // IANA name of the event's clock; "" is UTC
	Draw          *DrawView // nil unless the room is, or was, drawn
	Run           int
	Version       int64
	BookingURL    string
	Available     int           // seats free this second (not held, not booked), by the last report
	Total         int           // seats there are, by the last report
	SoldOut       bool          // every seat is booked, by the last report
	InventoryOK   bool          // that report is fresh
	Lanes         LaneReport    // by the last report
	ClaimWindow   time.Duration // how long a call stands
	At            time.Time     // when the board was read
	Recovering    bool          // Redis forgot a part of the line, which is being put back; nobody is called
	Stale         bool          // the board could not be refreshed for staleAfter: numbers are the last known
}

// DrawView is what everybody may know of a draw, enough to check it. Before the
// drawing is done Seed, Digest, Key, Entries and At are zero.
type DrawView struct {
	Run         int
	Commitment  string // 64 hex digits
	PublicValue string
	Seed        string // 64 hex digits
	Digest      string // 64 hex digits
	Key         string // 64 hex digits; DrawKey of the three above
	Entries     int
	At          time.Time
}
