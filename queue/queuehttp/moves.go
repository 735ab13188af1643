package queuehttp

import (
	"errors"
	"fmt"

	"github.com/gofiber/fiber/v2"
	go_qr "github.com/piglig/go-qr"

	"usher/internal/basehttp"
	"usher/queue"
	"usher/queue/limits"
)

var (
	errMoveCode        = basehttp.NewProblem(404, "move-code-invalid", "This code moves no place")
	errAlreadyAdmitted = basehttp.NewProblem(409, "already-admitted", "This place has been admitted and does not move any more")
)

// moveBody asks for a code.
type moveBody struct {
	Keep bool `json:"keep"` // good until the room closes, for whose browser keeps nothing
}

// moveDoc is a code by which another browser takes the caller's place over.
type moveDoc struct {
	Code      string `json:"code"`
	URL       string `json:"url"` // the code stands behind the #, which browsers send nowhere
	ExpiresAt string `json:"expiresAt"`
	Keep      bool   `json:"keep"`
	QRSVG     string `json:"qrSvg"` // of the url
}

// guess charges one try at codes to the caller's address.
func (s *Server) guess(c *fiber.Ctx, room string) error {
	ctx, cancel := callContext()
	defer cancel()
	err := s.line.Allow(ctx, room, "move", s.address(c))
	if refused := (*limits.RefusedError)(nil); errors.As(err, &refused) {
		return errTooMany.Detailf("Too many codes from this %s. Places are kept.", refused.Bucket).After(refused.RetryAfter)
	}
	return problem(err)
}

// moveCode makes a code of the caller's place. A place that is bound to a browser gives
// one to that browser alone: else a stolen token would be worth the pass.
func (s *Server) moveCode(c *fiber.Ctx, room string, keep bool) (moveDoc, error) {
	token, err := s.presented(c, room)
	if err != nil {
		return moveDoc{}, err
	}
	if _, err := s.bond(c, room, token); err != nil {
		return moveDoc{}, err
	}
	return s.moveCodeOf(c, room, token, keep)
}

func (s *Server) moveCodeOf(c *fiber.Ctx, room string, token queue.Token, keep bool) (moveDoc, error) {
	if err := s.guess(c, room); err != nil {
		return moveDoc{}, err
	}
	ctx, cancel := callContext()
	defer cancel()
	code, err := s.line.NewMoveCode(ctx, room, token, keep)
	if err != nil {
		return moveDoc{}, problem(err)
	}
	return s.describeCode(c, room, code)
}

func (s *Server) describeCode(c *fiber.Ctx, room string, code queue.MoveCode) (moveDoc, error) {
	d := moveDoc{Code: code.Code, ExpiresAt: stamp(code.Expires), Keep: code.Keep, URL: s.publicURL(c) + roomPath(room) + "/move#" + code.Code}
	qr, err := go_qr.EncodeText(d.URL, go_qr.Medium)
	if err != nil {
		return moveDoc{}, fmt.Errorf("queuehttp: qr code: %w", err)
	}
	svg, err := qr.ToSVGBytes(go_qr.NewQrCodeImgConfig(10, 4, go_qr.WithOptimalSVG()))
	if err != nil {
		return moveDoc{}, fmt.Errorf("queuehttp: qr code: %w", err)
	}
	d.QRSVG = string(svg)
	return d, nil
}

// move gives the place behind a code to the caller; kept tells that the code serves again.
func (s *Server) move(c *fiber.Ctx, room, code string) (doc placeDoc, kept bool, err error) {
	fan, fresh, err := s.whoMoves(c, room)
	if err != nil {
		return placeDoc{}, false, err
	}
	if err := s.guess(c, room); err != nil {
		return placeDoc{}, false, err
	}
	ctx, cancel := callContext()
	defer cancel()
	v, err := s.line.Move(ctx, room, fan, code)
	if err != nil {
		return placeDoc{}, false, problem(err)
	}
	if fresh {
		s.setCookie(c, fanCookie, fan.ID, fanCookieLife)
	}
	s.setPlace(c, room, v.Token)
	return s.describePlace(v), v.Kept, nil
}

// whoMoves is the browser a place moves to. What it had in the room does not count,
// but for a program that has nothing else to show.
func (s *Server) whoMoves(c *fiber.Ctx, room string) (f queue.Fan, fresh bool, err error) {
	key, err := basehttp.IdempotencyKey(c, false)
	if err != nil {
		return queue.Fan{}, false, err
	}
	token, bearer := s.placeToken(c, room)
	fans := s.fans(c)
	switch {
	case len(fans) > 0:
		return queue.Fan{ID: fans[0], Bound: true}, false, nil
	case key != "":
		return queue.Fan{ID: "key:" + key}, false, nil
	case bearer && s.line.Holds(room, token) && !s.line.IsKnown(room, token):
		return queue.Fan{Place: token}, false, nil
	case bearer && !s.line.Holds(room, token):
		return queue.Fan{}, false, s.brokenToken(c)
	}
	return queue.Fan{ID: newFan()}, true, nil
}

// publicURL is the edge as the caller reaches it.
func (s *Server) publicURL(c *fiber.Ctx) string {
	if s.opts.PublicURL != "" {
		return s.opts.PublicURL
	}
	return c.BaseURL()
}

func (s *Server) postMove(c *fiber.Ctx) error {
	var body moveBody
	if err := basehttp.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	doc, err := s.moveCode(c, room(c), body.Keep)
	if err != nil {
		return err
	}
	noStore(c)
	return c.Status(fiber.StatusCreated).JSON(doc)
}
