package queuehttp

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/queue"
	"usher/queue/limits"
)

// entriesPerAnswer bounds one answer of the list: 3.3 MB.
const entriesPerAnswer = 100_000

// drawDoc is a draw as everybody may know it. Until the drawing is done seed,
// entries, entriesDigest, orderKey and drawnAt are null.
type drawDoc struct {
	Algorithm     string  `json:"algorithm"`
	Run           int     `json:"run"` // a part of the commitment
	Commitment    string  `json:"commitment"`
	PublicValue   string  `json:"publicValue"`
	Seed          *string `json:"seed"`
	Entries       *int    `json:"entries"`
	EntriesDigest *string `json:"entriesDigest"`
	OrderKey      *string `json:"orderKey"` // what the order follows from; made of the seed, the digest and the public value
	DrawnAt       *string `json:"drawnAt"`
}

func describeDraw(v *queue.DrawView) *drawDoc {
	if v == nil {
		return nil
	}
	d := &drawDoc{Algorithm: queue.DrawAlgorithm, Run: v.Run, Commitment: v.Commitment, PublicValue: v.PublicValue}
	if !v.At.IsZero() {
		at := stamp(v.At)
		d.Seed, d.Entries, d.EntriesDigest, d.OrderKey, d.DrawnAt = &v.Seed, &v.Entries, &v.Digest, &v.Key, &at
	}
	return d
}

// publishedDraw is all that a check needs.
type publishedDraw struct {
	Room  string `json:"room"`
	State string `json:"state"`
	drawDoc
	EntriesURL string `json:"entriesUrl"`
}

// drawOf is the room's draw; the problems unknown-room and no-draw.
func (s *Server) drawOf(room string) (publishedDraw, roomDoc, error) {
	info, err := s.roomView(room)
	if err != nil {
		return publishedDraw{}, info, err
	}
	if info.Draw == nil {
		return publishedDraw{}, info, errNoDraw.Detailf("Its mode is %s.", info.Mode)
	}
	return publishedDraw{
		Room: info.Room, State: info.State, drawDoc: *info.Draw, EntriesURL: s.opts.PublicURL + "/v1/rooms/" + info.Room + "/draw/entries",
	}, info, nil
}

func (s *Server) getDraw(c *fiber.Ctx) error {
	d, _, err := s.drawOf(room(c))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, cacheSecond)
	return c.JSON(d)
}

// getDrawEntries is the list as it was digested, from a line on; an address gets so many
// parts a minute (edge.limits.guesses).
func (s *Server) getDrawEntries(c *fiber.Ctx) error {
	from := 0
	if q := strings.Clone(c.Query("from")); q != "" {
		var err error
		if from, err = strconv.Atoi(q); err != nil || from < 0 || from > 1<<31 {
			return basehttp.ErrBadRequest.Detailf("from must be the number of a line, counted from 0, not %q.", q)
		}
	}
	ctx, cancel := callContext()
	defer cancel()
	if err := s.line.Allow(ctx, room(c), "entries", s.address(c)); err != nil { // each answer is megabytes
		if refused := (*limits.RefusedError)(nil); errors.As(err, &refused) {
			return errTooMany.Detailf("Too many parts of the list for this %s. Go on after the time in Retry-After.", refused.Bucket).After(refused.RetryAfter)
		}
		return problem(err)
	}
	entries, total, err := s.line.Entries(ctx, room(c), from, entriesPerAnswer)
	if err != nil {
		return problem(err)
	}
	var b bytes.Buffer
	b.Grow(len(entries) * 33 / 16)
	if err := queue.WriteEntries(&b, entries); err != nil {
		return err
	}
	if next := from + entriesPerAnswer; next < total {
		c.Set("Usher-Next", strconv.Itoa(next))
	}
	// A reset ends a draw: not for ever, although the list of one draw never changes.
	c.Set(fiber.HeaderCacheControl, "public, max-age=60")
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	return c.Send(b.Bytes())
}
