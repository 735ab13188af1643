package bookinghttp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/admission/pass"
	"usher/booking"
	"usher/internal/basehttp"
)

// SessionCookie holds the session's token.
const SessionCookie = "usher_session"

// cookieLife outlives the session itself: its own bookings stay readable a day.
const cookieLife = pass.LongestSession + 24*time.Hour

func (s *Server) registerSessions(r fiber.Router) {
	r.Post("/v1/sessions", s.openSession)
	r.Get("/v1/session", s.readSession)
	r.Delete("/v1/session", s.endSession)
	r.Post("/enter", s.enter)
}

type sessionDoc struct {
	SessionID    string `json:"sessionId"`
	SessionToken string `json:"sessionToken,omitempty"`
	Room         string `json:"room"`
	ExpiresAt    stamp  `json:"expiresAt"`
	SeatQuota    int    `json:"seatQuota,omitempty"`
	Ended        bool   `json:"ended,omitempty"`
}

func (s *Server) openSession(c *fiber.Ctx) error {
	var body struct {
		Pass    string `json:"pass"`
		Binding string `json:"binding"`
	}
	if err := basehttp.DecodeJSON(c, &body, false); err != nil {
		return err
	}
	// Before the exchange: a refusal after it would leave the fan with a used pass.
	room, err := s.office.PassRoom(body.Pass)
	if err != nil {
		return s.fail(err)
	}
	if err := s.originFits(c, room); err != nil {
		return err
	}
	ctx, cancel := s.within()
	defer cancel()
	sess, created, err := s.office.OpenSession(ctx, body.Pass, body.Binding, s.token(c))
	if err != nil {
		return s.fail(err)
	}
	s.setCookie(c, sess.Token)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(created201(created)).JSON(sessionDoc{
		SessionID: sess.ID, SessionToken: sess.Token, Room: sess.Room, ExpiresAt: stamp(sess.ExpiresAt), SeatQuota: sess.SeatQuota,
	})
}

// enter is the same exchange for a browser: a form, a cookie and a redirect to
// the room's booking page. No secret stands in an address.
func (s *Server) enter(c *fiber.Ctx) error {
	if err := s.fromWaitingPage(c); err != nil {
		return err
	}
	field, err := basehttp.Form(c)
	if err != nil {
		return err
	}
	ctx, cancel := s.within()
	defer cancel()
	sess, _, err := s.office.OpenSession(ctx, field("pass"), field("binding"), strings.Clone(c.Cookies(SessionCookie)))
	if err != nil {
		return s.notEntered(c, field("pass"), err)
	}
	s.setCookie(c, sess.Token)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Redirect("/book/"+url.PathEscape(sess.Room), fiber.StatusSeeOther)
}

// enterReasons are the refusals of a pass that the page /enter has words for.
var enterReasons = []string{"pass-expired", "pass-already-used", "binding-required", "session-ended", "pass-invalid", "revoked"}

// notEntered sends a browser whose pass was refused to the page that says why and
// leads back to the line; who asks for JSON gets the problem. What has no problem
// stays an error: it is a fault of ours.
func (s *Server) notEntered(c *fiber.Ctx, passToken string, err error) error {
	err = s.fail(err)
	var p *basehttp.Problem
	accept := c.Get(fiber.HeaderAccept)
	if !errors.As(err, &p) || strings.Contains(accept, "json") && !strings.Contains(accept, fiber.MIMETextHTML) {
		return err
	}
	if p.Status >= fiber.StatusInternalServerError {
		s.log.Warn("a fan could not be let in", "problem", p.Slug, "err", err)
	}
	query := url.Values{}
	if room := claimedRoom(passToken); room != "" {
		query.Set("room", room)
	}
	if slices.Contains(enterReasons, p.Slug) {
		query.Set("why", p.Slug)
	}
	to := "/enter"
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Redirect(to, fiber.StatusSeeOther)
}

// claimedRoom is the room a pass names, "" when it cannot be read. Nothing is
// proven by it: it only chooses which room's page tells of the refusal.
func claimedRoom(passToken string) string {
	parts := strings.Split(passToken, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Room string `json:"room"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(raw, &claims) != nil || !booking.ValidID(claims.Room) {
		return ""
	}
	return claims.Room
}

func (s *Server) readSession(c *fiber.Ctx) error {
	sess, err := s.reader(c)
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(sessionDoc{SessionID: sess.ID, Room: sess.Room, ExpiresAt: stamp(sess.ExpiresAt), Ended: sess.Ended})
}

func (s *Server) endSession(c *fiber.Ctx) error {
	sess, err := s.reader(c) // ending twice is no error
	if err != nil {
		return err
	}
	ctx, cancel := s.within()
	defer cancel()
	if err := s.office.EndSession(ctx, sess); err != nil {
		return s.fail(err)
	}
	// The cookie stays: for a day it still reads this fan's own bookings.
	return c.SendStatus(fiber.StatusNoContent)
}

// token is what the caller shows: Bearer, else the cookie, else "".
func (s *Server) token(c *fiber.Ctx) string {
	if t := basehttp.BearerToken(c); t != "" {
		return t
	}
	return strings.Clone(c.Cookies(SessionCookie))
}

// session is the caller's living session.
func (s *Server) session(c *fiber.Ctx) (booking.Session, error) {
	sess, err := s.reader(c)
	if err == nil && sess.Revoked {
		return booking.Session{}, s.fail(booking.ErrRevoked)
	}
	if err == nil && sess.Ended {
		return booking.Session{}, s.fail(booking.ErrSessionEnded)
	}
	return sess, err
}

// reader is the caller's session, even one that ended within the last day: for
// reading one's own bookings. An unsafe call by cookie must come from our page.
func (s *Server) reader(c *fiber.Ctx) (booking.Session, error) {
	token := s.token(c)
	if token == "" {
		return booking.Session{}, errSessionMissing
	}
	if err := s.ownPage(c); err != nil {
		return booking.Session{}, err
	}
	ctx, cancel := s.within()
	defer cancel()
	sess, err := s.office.ReaderSession(ctx, token)
	if err != nil {
		return booking.Session{}, s.fail(err)
	}
	return sess, s.originFits(c, sess.Room)
}

func (s *Server) setCookie(c *fiber.Ctx, token string) {
	c.Cookie(&fiber.Cookie{
		Name: SessionCookie, Value: token, Path: "/", MaxAge: int(cookieLife / time.Second),
		HTTPOnly: true, Secure: s.opts.SecureCookies, SameSite: fiber.CookieSameSiteLaxMode,
	})
}

func created201(created bool) int {
	if created {
		return fiber.StatusCreated
	}
	return fiber.StatusOK
}
