package queuehttp

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/admission/pass"
	"usher/internal/basehttp"
	"usher/queue"
)

// joinBody is what a join may say besides who joins. The page's form has fields of
// the same names.
type joinBody struct {
	Altcha     string `json:"altcha"`     // a solved challenge, base64 as ALTCHA's libraries make it
	Invite     string `json:"invite"`     // an invite's token: a place ahead of the line
	WaitTicket string `json:"waitTicket"` // of an answer proof-required, once its time has come

	CustomerToken string `json:"customerToken"` // an integrator's word for who the fan is
	MoveCode      string `json:"moveCode"`      // of another browser, whose place moves here
}

// joinForm reads a joinBody from the page's form, which may be empty.
func joinForm(c *fiber.Ctx) (b joinBody, err error) {
	if len(c.Request().Body()) == 0 {
		return b, nil
	}
	get, err := basehttp.Form(c)
	if err != nil {
		return b, err
	}
	return joinBody{
		Altcha: get("altcha"), WaitTicket: get("waitTicket"), Invite: strings.TrimSpace(get("invite")),
		CustomerToken: strings.TrimSpace(get("customerToken")),
	}, nil
}

// join gives the caller a place in the room or finds the one they have, and sets
// the cookies. created tells which. Errors are problems.
func (s *Server) join(c *fiber.Ctx, room string, body joinBody) (doc placeDoc, created bool, err error) {
	fan, fresh, err := s.joins(c, room, body)
	if err != nil {
		return placeDoc{}, false, err
	}
	if !fresh {
		if err := s.ask(room, fan); err != nil {
			return placeDoc{}, false, err
		}
	}
	a := s.charge(c, room, fan, fresh, body)
	fan.Toll, fan.Invite = a.toll, body.Invite
	ctx, cancel := callContext()
	defer cancel()
	v, err := s.line.Join(ctx, room, fan)
	if err != nil {
		err = problem(s.unpaid(c, room, a, err))
		if slug := slugOf(err); fresh && (slug == errProofRequired.Slug || slug == errProofInvalid.Slug) {
			s.setCookie(c, fanCookie, fan.ID, fanCookieLife) // who comes back with the solution is the same fan
		}
		return placeDoc{}, false, err
	}
	if v.Created {
		s.paid(room, a)
	}
	if fresh {
		s.setCookie(c, fanCookie, fan.ID, fanCookieLife)
	}
	s.setPlace(c, room, v.Token)
	s.forgetCustomer(c, room)
	return s.describePlace(v), v.Created, nil
}

// whoJoins finds out who the fan is; fresh when a new id was made for them.
func (s *Server) whoJoins(c *fiber.Ctx, room string) (f queue.Fan, fresh bool, err error) {
	key, err := basehttp.IdempotencyKey(c, false)
	if err != nil {
		return queue.Fan{}, false, err
	}
	token, bearer := s.placeToken(c, room)
	good := s.line.Holds(room, token)
	if bearer && !good {
		return queue.Fan{}, false, s.brokenToken(c)
	}
	if good && s.line.IsKnown(room, token) { // the customer's place, whatever this browser's id
		return queue.Fan{Place: token}, false, nil
	}
	fans := s.fans(c)
	// The cookie this place was given to, of several or beside a newer one.
	if id := s.line.Owner(room, token, fans); id != "" {
		return queue.Fan{ID: id, Bound: true, Former: token}, false, nil
	}
	switch {
	case len(fans) == 0 && key != "":
		// Marked, so that a key never is somebody's cookie.
		return queue.Fan{ID: "key:" + key, Former: token}, false, nil
	case good: // whoever has the place keeps it, and gets no second one
		return queue.Fan{Place: token}, false, nil
	case len(fans) > 0:
		return queue.Fan{ID: fans[0], Bound: true}, false, nil
	}
	return queue.Fan{ID: newFan()}, true, nil
}

// view is the caller's place as it stands; told is what the answer before said under
// `shown`, or the last position alone, under this token. Errors are problems:
// place-token-missing when the caller presents none (or only a broken cookie).
func (s *Server) view(c *fiber.Ctx, room, told string) (placeDoc, error) {
	var v queue.View
	if err := s.look(&v, c, room, told); err != nil {
		return placeDoc{}, err
	}
	return s.describePlace(v), nil
}

// look is view before it is put into words.
func (s *Server) look(v *queue.View, c *fiber.Ctx, room, told string) error {
	shown := queue.ParseShown(told)
	if s.line.Recall(v, room, s.firstToken(c, room), shown) {
		return nil
	}
	room = strings.Clone(room) // what the line keeps outlives the request
	token, err := s.presented(c, room)
	if err != nil {
		return err
	}
	if err := s.ask(room, queue.Fan{Place: token}); err != nil {
		return err
	}
	ctx, cancel := callContext()
	defer cancel()
	if *v, err = s.line.StatusSince(ctx, room, token, shown); err != nil {
		return problem(err)
	}
	if v.Token != token {
		s.setPlace(c, room, v.Token) // the place moved; its token moves along
	}
	return nil
}

// claim is the caller's pass, minted from the slot: the same one each time. It leads to
// the return address, if one is asked for or was kept, and else to the box office. Errors are problems: not-called-yet, stand-by, place-expired, room-paused,
// binding-lost, …
func (s *Server) claim(c *fiber.Ctx, room, returnAddress string) (passDoc, error) {
	token, err := s.presented(c, room)
	if err != nil {
		return passDoc{}, err
	}
	to, err := s.whereTo(c, room, returnAddress)
	if err != nil {
		return passDoc{}, err
	}
	// Before anything is granted: a pass whose binding nobody can tell opens no
	// session, and its slot would be held for nothing.
	binding, err := s.bond(c, room, token)
	if err != nil {
		return passDoc{}, err
	}
	return s.claimFor(room, token, binding, to)
}

// bond is the secret that the place is bound to the caller's browser by, "" for a place
// that is bound to none; the problem binding-lost when it is another's.
func (s *Server) bond(c *fiber.Ctx, room string, token queue.Token) (string, error) {
	binding, bound, err := s.line.Bond(room, token, s.fans(c))
	if err != nil {
		return "", problem(err)
	}
	if bound && binding == "" {
		return "", errBindingLost.Detailf("The place is bound to the browser that joined, by its cookie " + fanCookie +
			"; send it along. Without it, leave and join again. Nothing was changed.")
	}
	return binding, nil
}

func (s *Server) claimFor(room string, token queue.Token, binding string, to back) (passDoc, error) {
	if err := s.ask(room, queue.Fan{Place: token}); err != nil {
		return passDoc{}, err
	}
	ctx, cancel := callContext()
	defer cancel()
	a, err := s.line.Claim(ctx, room, token)
	if err != nil {
		return passDoc{}, problem(err)
	}
	key, err := s.opts.Keys().Signer(s.opts.Now())
	if err != nil {
		return passDoc{}, problem(err)
	}
	signed, err := pass.Mint(key, a.Claims())
	if err != nil {
		return passDoc{}, fmt.Errorf("queuehttp: %w", err)
	}
	d := passDoc{Pass: signed, ExpiresAt: stamp(a.ExpiresAt), RedirectURL: s.enterURL(room), Binding: binding}
	if to.address != "" {
		d.RedirectURL, d.Handover = to.address, to.handover
	}
	return d, nil
}

// leave gives the caller's place up and clears its cookie.
func (s *Server) leave(c *fiber.Ctx, room string) error {
	token, err := s.presented(c, room)
	if err != nil {
		return err
	}
	if err := s.ask(room, queue.Fan{Place: token}); err != nil {
		return err
	}
	ctx, cancel := callContext()
	defer cancel()
	if err := s.line.Leave(ctx, room, token); err != nil {
		return problem(err)
	}
	s.clearPlace(c, room)
	return nil
}

// presented is a good token of the room; place-token-missing without one,
// place-token-invalid for a broken Bearer.
func (s *Server) presented(c *fiber.Ctx, room string) (queue.Token, error) {
	if _, err := s.line.Room(room); err != nil {
		return "", problem(err)
	}
	token, bearer := s.placeToken(c, room)
	switch {
	case s.line.Holds(room, token):
		return token, nil
	case bearer:
		return "", s.brokenToken(c)
	}
	return "", errTokenMissing.Detailf("Join the room first; then send the token as Bearer or as its cookie.")
}

// bookingURL is where the room's passes are taken, without a slash at the end.
func (s *Server) bookingURL(room string) string {
	u := ""
	if v, err := s.line.Room(room); err == nil {
		u = v.BookingURL
	}
	if u == "" && s.opts.BookingURL != nil {
		u = s.opts.BookingURL(room)
	}
	return strings.TrimRight(u, "/")
}

// enterURL is where a browser goes with its pass. No secret is in it.
func (s *Server) enterURL(room string) string {
	return s.bookingURL(room) + "/enter?room=" + url.QueryEscape(room)
}

// unreachable reports a store that does not answer, as opposed to one that refuses.
func unreachable(err error) bool {
	var netErr net.Error
	var opErr *net.OpError
	return errors.As(err, &netErr) || errors.As(err, &opErr)
}

func (s *Server) postPlace(c *fiber.Ctx) error {
	var body joinBody
	if err := basehttp.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	name := room(c)
	if body.MoveCode != "" {
		doc, _, err := s.move(c, name, body.MoveCode)
		if err != nil {
			return err
		}
		noStore(c)
		return c.JSON(doc)
	}
	doc, created, err := s.join(c, name, body)
	if err != nil {
		return err
	}
	status := fiber.StatusOK
	if created {
		status = fiber.StatusCreated
		c.Location("/v1/rooms/" + name + "/place")
	}
	noStore(c)
	return c.Status(status).JSON(doc)
}

func (s *Server) getPlace(c *fiber.Ctx) error {
	var v queue.View
	if err := s.look(&v, c, c.Params("room"), c.Query("shown")); err != nil {
		return err
	}
	noStore(c)
	return s.sendPlace(c, &v)
}

func (s *Server) deletePlace(c *fiber.Ctx) error {
	if err := s.leave(c, room(c)); err != nil {
		return err
	}
	noStore(c)
	return c.SendStatus(fiber.StatusNoContent)
}

func (s *Server) postPass(c *fiber.Ctx) error {
	var body struct {
		Return string `json:"return"` // where to go with the pass; default: as the waiting page was called with
	}
	if err := basehttp.DecodeJSON(c, &body, true); err != nil {
		return err
	}
	doc, err := s.claim(c, room(c), body.Return)
	if err != nil {
		return err
	}
	noStore(c)
	return c.Status(fiber.StatusCreated).JSON(doc)
}

var headerCache, noStoreValue = []byte(fiber.HeaderCacheControl), []byte("no-store")

func noStore(c *fiber.Ctx) { c.Response().Header.SetCanonical(headerCache, noStoreValue) }
