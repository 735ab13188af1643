package queuehttp

import (
	"math"
	"time"

	"usher/queue"
)

// placeDoc is the answer about a place, the same for join and poll.
type placeDoc struct {
	PlaceID     string       `json:"placeId"`
	Token       string       `json:"token"`
	Status      queue.Status `json:"status"` // waiting called admitted left expired
	Position    int          `json:"position"`
	Ahead       int          `json:"ahead"`
	Waiting     int          `json:"waiting"`
	ETA         *etaDoc      `json:"eta"` // null: not known
	PollAfterMs int64        `json:"pollAfterMs"`
	Shown       string       `json:"shown,omitempty"`       // bring it back as ?shown= with the next poll: numbers then never get worse by chance
	CalledUntil string       `json:"calledUntil,omitempty"` // absent while standing by
	StandingBy  bool         `json:"standingBy,omitempty"`
	Line        string       `json:"line,omitempty"`    // "invited": ahead of the line by an invite; "priority": in the priority line by one
	Revoked     bool         `json:"revoked,omitempty"` // with expired: by the operator
	Moved       bool         `json:"moved,omitempty"`   // with left: the place is another browser's now
	Stream      bool         `json:"stream,omitempty"`  // news come by …/place/stream too, without asking
	Room        roomDoc      `json:"room"`
}

type etaDoc struct {
	LowSeconds  int `json:"lowSeconds"`
	HighSeconds int `json:"highSeconds"`
}

// roomDoc is the public state of a room.
type roomDoc struct {
	Room          string       `json:"room"`
	Title         string       `json:"title"`
	State         string       `json:"state"`
	Mode          string       `json:"mode"`
	Waiting       int          `json:"waiting"`
	RatePerMinute int          `json:"ratePerMinute"` // in force now
	OpensAt       *string      `json:"opensAt"`       // null without a schedule
	GathersAt     *string      `json:"gathersAt"`     // null without; places are given from then on
	Timezone      string       `json:"timezone"`      // IANA name of the event's clock
	Draw          *drawDoc     `json:"draw"`          // null unless the room is drawn
	ClaimSeconds  int          `json:"claimSeconds"`  // how long a call stands
	Inventory     inventoryDoc `json:"inventory"`
	Recovering    bool         `json:"recovering"`      // the line is being put back; nobody is called, numbers are the last known
	Stale         bool         `json:"stale,omitempty"` // the numbers are the last known
}

type inventoryDoc struct {
	Available *int `json:"available"` // free this second; null: not known
	Total     *int `json:"total"`     // null: not known
	SoldOut   bool `json:"soldOut"`   // every seat is booked, none merely held
}

type passDoc struct {
	Pass        string `json:"pass"`
	ExpiresAt   string `json:"expiresAt"`
	RedirectURL string `json:"redirectUrl"`
	// Handover is how the pass gets to a return address: "post", by a form with the
	// fields pass, binding and room; "cookie", the page there asks for it. "" at the box
	// office, which takes the form too, at its address without the query.
	Handover string `json:"handover,omitempty"`
	Binding  string `json:"binding,omitempty"`
}

func (s *Server) describePlace(v queue.View) placeDoc {
	d := describeAlone(&v)
	d.Stream, d.Room = s.streamable(&v), describeRoom(v.Room)
	return d
}

// describeAlone is the document without its room, and without the hint of a stream.
func describeAlone(v *queue.View) placeDoc {
	d := placeDoc{
		PlaceID: v.PlaceID, Token: string(v.Token), Status: v.Status,
		Position: v.Position, Ahead: v.Ahead, Waiting: v.Waiting,
		PollAfterMs: v.PollAfter.Milliseconds(), StandingBy: v.StandingBy, Revoked: v.Revoked, Moved: v.Moved,
	}
	if v.Invited {
		d.Line = "invited"
	}
	if v.Priority {
		d.Line = "priority"
	}
	if v.Position > 0 {
		d.Shown = v.Shown().String()
	}
	if v.ETA != nil {
		d.ETA = &etaDoc{LowSeconds: int(v.ETA.Low.Seconds()), HighSeconds: int(math.Ceil(v.ETA.High.Seconds()))}
	}
	if !v.CalledUntil.IsZero() {
		d.CalledUntil = stamp(v.CalledUntil)
	}
	return d
}

func describeRoom(v queue.RoomView) roomDoc {
	d := roomDoc{
		Room: v.Room, Title: v.Title, State: v.State, Mode: v.Mode, Waiting: v.Waiting,
		RatePerMinute: v.Valve.Rate, ClaimSeconds: int(v.ClaimWindow.Seconds()), Stale: v.Stale, Recovering: v.Recovering,
	}
	if !v.OpensAt.IsZero() {
		at := stamp(v.OpensAt)
		d.OpensAt = &at
	}
	if !v.GathersAt.IsZero() {
		at := stamp(v.GathersAt)
		d.GathersAt = &at
	}
	if d.Timezone = v.Timezone; d.Timezone == "" {
		d.Timezone = "UTC"
	}
	d.Draw = describeDraw(v.Draw)
	if v.InventoryOK {
		d.Inventory = inventoryDoc{Available: &v.Available, Total: &v.Total, SoldOut: v.SoldOut}
	}
	return d
}

// stamp is RFC 3339 in UTC with milliseconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
