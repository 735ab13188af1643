package booking

// The states of a room:
//
//	scheduled ──► gathering ──► drawing ──► open ◄──► paused
//	    │            │  ▲                    │           │
//	    │            ▼  │ (not drawn yet)    ▼           │
//	    └─────────► closed ◄─────────────────┴───────────┘
//
// A room of mode draw that has not been drawn opens by its drawing and in no other
// way: those who gathered were told that the order is drawn. Every other room skips
// the drawing, and may skip the gathering. Only the line ends a drawing (FinishDraw).

// RoomVerb is the change an operator's word stands for: gather, draw, open, pause,
// resume or close. ok is false for any other word.
func RoomVerb(verb string) (c RoomChange, ok bool) {
	to := map[string]string{
		"gather": "gathering", "draw": "drawing", "open": "open", "pause": "paused", "resume": "open", "close": "closed",
	}
	state, ok := to[verb]
	if !ok {
		return RoomChange{}, false
	}
	c.State = &state
	if verb == "resume" {
		c.OnlyFrom = "paused"
	}
	return c, true
}

// mayBecome is the operator's state machine. A closed room may open again: sales
// that were stopped in error go on, and the audit log tells.
func mayBecome(r Room, to string) bool {
	undrawn := r.Mode == "draw" && r.Draw.At.IsZero()
	switch to {
	case "gathering":
		return r.State == "scheduled" || r.State == "closed" && undrawn
	case "drawing":
		return r.State == "gathering" && undrawn
	case "open":
		return r.State == "paused" || !undrawn && (r.State == "scheduled" || r.State == "gathering" || r.State == "closed")
	case "paused":
		return r.State == "open"
	case "closed":
		return r.State == "scheduled" || r.State == "gathering" || r.State == "open" || r.State == "paused"
	}
	return false
}

// whyNot says what an operator who is refused has to do instead; "" when the two
// states say it all.
func whyNot(r Room, to string) string {
	switch {
	case r.State == "drawing":
		return "The drawing is under way; the room opens by itself as soon as everybody has a number."
	case to == "drawing" && r.Mode != "draw":
		return "The room's mode is " + r.Mode + "; only mode draw draws."
	case to == "drawing" && !r.Draw.At.IsZero():
		return "The order has been drawn already."
	case to == "drawing" || to == "open" && r.Mode == "draw" && r.Draw.At.IsZero():
		return "A room of mode draw gathers first, is drawn, and opens by itself after the drawing."
	}
	return ""
}
