package bookinghttp

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking/payment"
	"usher/internal/pagehttp"
)

// What the page of a booking shows. They are fewer and other than the booking's
// states: a fan asks "do I have my tickets?", not "which state is the row in?".
const (
	showTickets  = "tickets"
	showChecking = "checking" // the provider has not said anything yet
	showDeclined = "declined" // it said no, and the seats are still held
	showFailed   = "failed"
	showRefunded = "refunded"
)

// bookingView is the page one comes back to from the payment, and comes back to
// for the ticket. It is complete without its script, which only looks again.
type bookingView struct {
	Show    string
	Why     string // of a failure: the last part of a message's id
	Number  string // short, to say at a counter
	Booking payment.Booking
	Place   place
	Tickets []ticketView
	ShopURL string
	Page    bookingPage
}

type bookingPage struct {
	Lang     string         `json:"lang"`
	Messages map[string]any `json:"messages"`
	HoldID   string         `json:"holdId"`
	Showtime string         `json:"showtime"`
}

type ticketView struct {
	payment.Ticket
	I, N     int
	QR       string
	Refunded bool
}

func (p *pages) bookingPage(c *fiber.Ctx) error {
	if p.desk == nil {
		return p.missing(c)
	}
	sess, err := p.reader(c)
	if noSession(err) {
		return p.missing(c)
	}
	if err != nil {
		return err
	}
	ctx, cancel := p.within()
	defer cancel()
	b, err := p.desk.Booking(ctx, sess, strings.Clone(c.Params("booking")))
	if errors.Is(err, payment.ErrUnknownBooking) {
		return p.missing(c)
	}
	if err != nil {
		return p.fail(err)
	}
	return p.kit.Render(c, pagehttp.View{Page: "booking", Data: p.bookingView(p.kit.Text(c), b, time.Now())})
}

func (p *pages) bookingView(text *pagehttp.Text, b payment.Booking, now time.Time) bookingView {
	show, why := whatToShow(b, now)
	v := bookingView{
		Show: show, Why: why, Booking: b, Number: strings.ToUpper(b.ID[len(b.ID)-8:]),
		Place:   placeOf(text, b.Showtime.StartsAt, b.Showtime.Timezone, b.Showtime.Venue, b.Showtime.City),
		ShopURL: "/book/" + url.PathEscape(b.Showtime.Room) + "?showtime=" + url.QueryEscape(b.ShowtimeID),
		Page: bookingPage{
			Lang: text.Lang.Code, Messages: text.ForScript(scriptMessages...), HoldID: b.HoldID, Showtime: b.ShowtimeID,
		},
	}
	for i, t := range b.Tickets {
		v.Tickets = append(v.Tickets, ticketView{
			Ticket: t, I: i + 1, N: len(b.Tickets), Refunded: t.State == "REFUNDED",
			QR: "/v1/bookings/" + b.ID + "/tickets/" + t.ID + "/qr.svg",
		})
	}
	return v
}

// whatToShow decides by the booking alone. The clock is only asked whether a
// second try still makes sense; the checkout decides that again.
func whatToShow(b payment.Booking, now time.Time) (show, why string) {
	switch b.State {
	case payment.BookingConfirmed:
		return showTickets, ""
	case payment.BookingRefunded:
		return showRefunded, ""
	case payment.BookingFailed:
		return showFailed, failure(b)
	}
	if b.Payment.State != payment.PaymentFailed {
		return showChecking, ""
	}
	if now.Before(b.HoldExpiresAt) {
		return showDeclined, ""
	}
	return showFailed, "declined"
}

// failure puts the reason into one of the few things a fan can understand and act on.
func failure(b payment.Booking) string {
	switch {
	case b.Payment.State == payment.PaymentRefundDue || b.Payment.State == payment.PaymentRefunded:
		if b.Reason == payment.ReasonHoldExpired || b.Reason == payment.ReasonSeatsResold {
			return "late"
		}
		return "other"
	case b.Payment.State == payment.PaymentFailed:
		return "declined"
	case b.Reason == payment.ReasonHoldExpired || b.Reason == payment.ReasonHoldReleased:
		return "expired"
	}
	return "other"
}
