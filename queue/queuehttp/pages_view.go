package queuehttp

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/pagehttp"
	"usher/queue"
)

// The states of the waiting page. room.js knows the same ones and switches
// between the panels the server has already written.
const (
	stateWaiting   = "waiting"
	stateGathering = "gathering" // in the draw, without a number yet
	stateDrawing   = "drawing"
	statePlacing   = "placing" // has a place, whose number is not known this moment
	stateCalled    = "called"
	stateStandBy   = "standby"
	stateAdmitted  = "admitted"
	stateExpired   = "expired"
	stateRevoked   = "revoked"
	stateLeft      = "left"
	stateMoved     = "moved"     // to another browser
	stateKnown     = "known"     // no place yet, and none for whom no integrator names
	stateJoin      = "join"      // no place yet
	stateScheduled = "scheduled" // no place yet, and none to be had before the opening
	stateClosed    = "closed"
	stateTrouble   = "trouble" // the line cannot be read
)

// waitView is what templates/room.html shows.
type waitView struct {
	Room, Title   string
	State         string
	Banner        string // key under banner., or ""
	Doc           placeDoc
	First         int // position when the fan joined, by what this browser was shown
	Paused        bool
	WindowMinutes int       // of the claim, rounded
	Drawn         bool      // the room is drawn, or will be
	OpensAt       time.Time // zero without a schedule
	JoinAt        time.Time // when places can be had: the gathering of a draw, else the opening
	Refresh       int       // seconds until a page without script loads itself again; 0: never

	WaitTicket  string // of a browser that cannot compute a proof, for the join's form
	WaitSeconds int    // until it is good; 0: now

	// Words, already in the language.
	DocTitle, Note, From, Wait, Left, Line, Called string
	Progress                                       int    // hundredths of the way since joining
	Remaining                                      int    // hundredths of the claim window
	Boot                                           string // JSON for room.js

	back   string // the return address of this visit
	path   string
	now    time.Time
	script json.RawMessage // room.js's messages
}

// waitView gathers the facts; finish turns them into words.
func (p *pages) waitView(c *fiber.Ctx, room string, info roomDoc, doc *placeDoc, banner string) *waitView {
	v := &waitView{Room: room, Title: info.Title, Banner: banner, path: roomPath(room), back: p.backTo(c, room).address, now: time.Now(), script: p.scripts[pagehttp.Negotiate(c).Code]}
	if v.Title == "" {
		v.Title = room
	}
	v.State = stateJoin
	if doc != nil {
		v.Doc = *doc
	}
	v.Doc.Room = info
	v.Paused = info.State == "paused"
	if info.OpensAt != nil {
		v.OpensAt, _ = time.Parse(time.RFC3339, *info.OpensAt)
	}
	v.JoinAt, v.Drawn = v.OpensAt, info.Draw != nil
	if v.Drawn && info.GathersAt != nil {
		v.JoinAt, _ = time.Parse(time.RFC3339, *info.GathersAt)
	}
	v.WindowMinutes = max(1, int((claimWindow(info)+30*time.Second)/time.Minute))
	v.State = pageState(info, doc, c.Query("left") != "")
	if (v.State == stateJoin || v.State == stateLeft || v.State == stateMoved) && p.unnamed(c, room) {
		v.State = stateKnown
	}
	if v.State == stateLeft {
		v.path += "?left=1"
	}
	switch v.State {
	case stateWaiting:
		shown := p.recallShown(c, room, v.Doc.Token)
		v.Doc.Position, v.First = shown.apply(v.Doc.Position)
		v.Doc.Ahead = max(0, v.Doc.Position-1)
		p.rememberShown(c, room, v.Doc.Token, shownPlace{First: v.First, Last: v.Doc.Position, Told: v.Doc.Shown})
	case stateExpired, stateRevoked, stateLeft, stateMoved:
		p.forgetShown(c, room) // a new place may be further back
	}
	return v
}

func pageState(info roomDoc, doc *placeDoc, left bool) string {
	closed := info.State == "closed" || info.Mode == "reject"
	if doc != nil {
		switch doc.Status {
		case queue.Admitted:
			return stateAdmitted
		case queue.Called:
			if closed {
				return stateClosed
			}
			if doc.StandingBy {
				return stateStandBy
			}
			return stateCalled
		case queue.Waiting:
			if closed {
				return stateClosed
			}
			return waitingState(info, doc)
		case queue.Expired:
			if doc.Revoked {
				return stateRevoked
			}
			if closed {
				return stateClosed
			}
			return stateExpired
		}
	}
	switch {
	case closed:
		return stateClosed
	case doc != nil && doc.Moved:
		return stateMoved
	case left || doc != nil && doc.Status == queue.Left:
		return stateLeft
	case info.State == "scheduled":
		return stateScheduled
	}
	return stateJoin
}

// waitingState tells those who wait with a number from those who have none yet.
func waitingState(info roomDoc, doc *placeDoc) string {
	switch {
	case doc.Position > 0:
		return stateWaiting
	case info.Mode == "draw" && info.State == "gathering":
		return stateGathering
	case info.Mode == "draw" && !info.Recovering:
		return stateDrawing
	}
	return statePlacing
}

// finish writes the words.
func (v *waitView) finish(t *pagehttp.Text) *waitView {
	w := words{t}
	v.Note = w.ahead(v.Doc.Ahead)
	v.From = t.Must("w.from", "Position", t.Number(v.First))
	v.Wait = w.wait(v.Doc.ETA)
	if v.Paused {
		v.Wait = t.Must("w.wait.paused")
	}
	v.Left = w.left(v.Doc.Room.Inventory)
	v.Line = w.count("w.line", max(v.Doc.Waiting, v.Doc.Room.Waiting))
	v.Progress = progress(v.First, v.Doc.Position)
	v.title(t)
	if until, err := time.Parse(time.RFC3339, v.Doc.CalledUntil); err == nil {
		left := until.Sub(v.now)
		v.Called = w.called(left)
		v.Remaining = min(100, max(0, int(100*left/claimWindow(v.Doc.Room))))
	}
	if v.Banner == "" {
		v.Banner = v.banner()
	}
	v.Refresh = v.refresh()
	v.Boot = v.boot()
	return v
}

func (v *waitView) title(t *pagehttp.Text) {
	switch v.State {
	case stateWaiting:
		v.DocTitle = t.Must("w.title.waiting", "Position", t.Number(v.Doc.Position), "Room", v.Title)
	case stateCalled, stateStandBy:
		v.DocTitle = t.Must("w.title.called", "Room", v.Title)
	default:
		v.DocTitle = t.Must("w.title.plain", "Room", v.Title)
	}
}

func (v *waitView) banner() string {
	inLine := v.State == stateWaiting || v.State == stateCalled || v.State == stateStandBy
	switch {
	case v.State == stateClosed || v.State == stateTrouble:
		return ""
	case v.Paused:
		return "paused"
	case v.Doc.Room.Recovering && (inLine || v.State == statePlacing):
		return "recovering"
	case v.Doc.Room.Stale && inLine:
		return "stale"
	case v.State == stateWaiting && v.Doc.Room.Inventory.SoldOut:
		return "sold"
	}
	return ""
}

// refresh is for pages without script: often near the head and at the door,
// calmly behind, never where nothing changes by itself.
func (v *waitView) refresh() int {
	switch v.State {
	case stateJoin:
		return v.WaitSeconds
	case stateWaiting:
		if v.Doc.PollAfterMs > 0 && v.Doc.PollAfterMs <= 3500 && !v.Paused {
			return 3
		}
		return 15
	case stateStandBy, stateDrawing, statePlacing:
		return 3
	case stateCalled, stateScheduled, stateTrouble, stateGathering:
		return 15
	case stateClosed:
		return 60
	}
	return 0
}

// boot is what room.js starts from; the place's token stays in its HttpOnly cookie.
func (v *waitView) boot() string {
	doc := v.Doc
	mark := shownKey(doc.Token)
	doc.Token = ""
	b, err := json.Marshal(map[string]any{
		"room": v.Room, "title": v.Title, "state": v.State, "doc": doc, "first": v.First, "mark": mark,
		"now": stamp(v.now), "back": v.back, "m": v.script,
	})
	if err != nil {
		return "{}" // only numbers and strings go in
	}
	return string(b)
}

// progress is the part of the way from the position at joining to the head, in
// hundredths; never nothing, which would look like a broken bar.
func progress(first, now int) int {
	if now <= 1 {
		return 100
	}
	return max(4, 100*(first-now)/max(1, first-1))
}
