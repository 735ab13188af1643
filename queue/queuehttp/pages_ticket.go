package queuehttp

import (
	"errors"
	"math"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/queue/proof"
)

// A page without script cannot compute a proof: it waits. The ticket it got is kept
// in a cookie, as the page that shows the seconds loads itself again by GET, and in
// the form that joins with it.
const waitCookie = "usher_wait_" // + room

const waitCookieLife = 15 * time.Minute

// keepTicket remembers the ticket of a join that was asked for a proof, and forgets
// it once it is of no more use.
func (p *pages) keepTicket(c *fiber.Ctx, room string, err error) {
	var told *basehttp.Problem
	if errors.As(err, &told) && (told.Slug == errProofRequired.Slug || told.Slug == errProofInvalid.Slug) {
		if ticket, ok := told.Fields["waitTicket"].(string); ok {
			p.s.setCookie(c, waitCookie+room, ticket, waitCookieLife)
		}
		return
	}
	if err == nil && len(cookies(c, waitCookie+room)) > 0 {
		p.s.setCookie(c, waitCookie+room, "", -time.Hour)
	}
}

// keptTicket is the ticket of a form that brought none itself.
func keptTicket(c *fiber.Ctx, room string) string {
	if kept := cookies(c, waitCookie+room); len(kept) > 0 {
		return kept[0]
	}
	return ""
}

// ticket puts a kept ticket into the page of a fan who has no place, or none any more.
func (p *pages) ticket(c *fiber.Ctx, room string, v *waitView) {
	kept := keptTicket(c, room)
	if v.State != stateJoin && v.State != stateLeft && v.State != stateExpired || kept == "" || p.s.gate.proofs == nil {
		return
	}
	fan, fresh, err := p.s.whoJoins(c, room)
	if err != nil {
		return
	}
	_, payer := payers(fan, fresh, p.s.address(c))
	_, err = p.s.gate.proofs.Redeem(room, payer, kept)
	switch early := (*proof.TooEarlyError)(nil); {
	case err == nil:
		v.WaitTicket, v.State = kept, stateJoin
	case errors.As(err, &early):
		v.WaitTicket, v.State, v.WaitSeconds = kept, stateJoin, max(1, int(math.Ceil(early.Wait.Seconds())))
	}
}
