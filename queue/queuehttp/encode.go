package queuehttp

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"usher/queue"
)

// A poll is the most frequent answer by far, so its document is written by hand: the
// same bytes as encoding/json makes (a test holds the two together, field by field), and
// the part about the room, the same for all fans of a second, is made once a board.

// append writes the document; room is what stands under `room`.
func (d *placeDoc) append(b, room []byte) []byte {
	// The token is verified and so base64url, the id hexadecimal: no look at each letter.
	b = append(append(append(b, `{"placeId":"`...), d.PlaceID...), '"')
	b = append(append(append(b, `,"token":"`...), d.Token...), '"')
	b = appendText(append(b, `,"status":`...), string(d.Status))
	b = strconv.AppendInt(append(b, `,"position":`...), int64(d.Position), 10)
	b = strconv.AppendInt(append(b, `,"ahead":`...), int64(d.Ahead), 10)
	b = strconv.AppendInt(append(b, `,"waiting":`...), int64(d.Waiting), 10)
	if d.ETA == nil {
		b = append(b, `,"eta":null`...)
	} else {
		b = strconv.AppendInt(append(b, `,"eta":{"lowSeconds":`...), int64(d.ETA.LowSeconds), 10)
		b = strconv.AppendInt(append(b, `,"highSeconds":`...), int64(d.ETA.HighSeconds), 10)
		b = append(b, '}')
	}
	b = strconv.AppendInt(append(b, `,"pollAfterMs":`...), d.PollAfterMs, 10)
	b = appendUnlessEmpty(b, `,"shown":`, d.Shown)
	b = appendUnlessEmpty(b, `,"calledUntil":`, d.CalledUntil)
	b = appendIf(b, `,"standingBy":true`, d.StandingBy)
	b = appendUnlessEmpty(b, `,"line":`, d.Line)
	b = appendIf(b, `,"revoked":true`, d.Revoked)
	b = appendIf(b, `,"moved":true`, d.Moved)
	b = appendIf(b, `,"stream":true`, d.Stream)
	b = append(append(b, `,"room":`...), room...)
	return append(b, '}')
}

func appendIf(b []byte, field string, is bool) []byte {
	if is {
		b = append(b, field...)
	}
	return b
}

func appendUnlessEmpty(b []byte, field, s string) []byte {
	if s == "" {
		return b
	}
	return appendText(append(b, field...), s)
}

// appendText writes a JSON string. Ours are mostly plain; whatever would need an
// escape is left to encoding/json.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			escaped, _ := json.Marshal(s) //nolint:errchkjson // a string always marshals
			return append(b, escaped...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// roomTexts keeps the JSON of each room's public state.
type roomTexts struct{ m sync.Map } // name → *roomText

type roomText struct {
	at        time.Time // of the board
	stale, ok bool
	json      []byte
}

// of is the room's state as JSON. It is the same for one board, but for what its age
// changes.
func (t *roomTexts) of(v *queue.RoomView) []byte {
	if kept, found := t.m.Load(v.Room); found {
		if k, ok := kept.(*roomText); ok && k.at.Equal(v.At) && k.stale == v.Stale && k.ok == v.InventoryOK {
			return k.json
		}
	}
	text, err := json.Marshal(describeRoom(*v))
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	t.m.Store(v.Room, &roomText{at: v.At, stale: v.Stale, ok: v.InventoryOK, json: text})
	return text
}

// appendPlace writes the whole document of a place.
func (s *Server) appendPlace(b []byte, v *queue.View) []byte {
	d := describeAlone(v)
	d.Stream = s.streamable(v)
	return d.append(b, s.texts.of(&v.Room))
}

// buffers are for documents on their way into a response.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// sendPlace answers with the document of a place.
func (s *Server) sendPlace(c *fiber.Ctx, v *queue.View) error {
	s.writePlace(c.Response(), v)
	return nil
}

func (s *Server) writePlace(r *fasthttp.Response, v *queue.View) {
	buf, ok := buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	*buf = s.appendPlace((*buf)[:0], v)
	r.Header.SetContentType(fiber.MIMEApplicationJSON)
	r.SetBody(*buf) // copied
	buffers.Put(buf)
}
