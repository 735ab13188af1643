package bookinghttp

import (
	"fmt"

	"usher/booking/payment"
)

type bookingDoc struct {
	BookingID      string      `json:"bookingId"`
	ShowtimeID     string      `json:"showtimeId"`
	HoldID         string      `json:"holdId"`
	State          string      `json:"state"`
	Reason         string      `json:"reason,omitempty"`
	Seats          []string    `json:"seats"`
	Amount         int64       `json:"amount"`
	RefundedAmount int64       `json:"refundedAmount"`
	Currency       string      `json:"currency"`
	CreatedAt      stamp       `json:"createdAt"`
	ConfirmedAt    *stamp      `json:"confirmedAt,omitempty"`
	HoldExpiresAt  stamp       `json:"holdExpiresAt"`
	Payment        *paymentDoc `json:"payment"`
	Showtime       playDoc     `json:"showtime"`
	Places         []placeDoc  `json:"places"` // in every state, in the hall's order
	Tickets        []ticketDoc `json:"tickets"`
}

type paymentDoc struct {
	PaymentID  string `json:"paymentId"`
	State      string `json:"state"`
	Status     string `json:"status"` // in words for people: see paymentStatus
	PaymentURL string `json:"paymentUrl,omitempty"`
	ExpiresAt  stamp  `json:"expiresAt"`
	Reason     string `json:"reason,omitempty"`
}

type playDoc struct {
	Title    string `json:"title"`
	Subtitle string `json:"subtitle,omitempty"`
	Venue    string `json:"venue"`
	City     string `json:"city"`
	Timezone string `json:"timezone"`
	Room     string `json:"room"`
	StartsAt stamp  `json:"startsAt"`
}

// placeDoc is a booked seat as people say it; there are tickets only once it is paid.
type placeDoc struct {
	Seat       string `json:"seat"` // its code
	Section    string `json:"section"`
	Row        string `json:"row"`
	Number     string `json:"number"` // as printed
	Standing   bool   `json:"standing"`
	PriceClass string `json:"priceClass"`
	Amount     int64  `json:"amount"`
}

type ticketDoc struct {
	TicketID   string `json:"ticketId"`
	Seat       string `json:"seat"` // its code
	Section    string `json:"section"`
	Row        string `json:"row"`
	Number     string `json:"number"` // as printed
	Standing   bool   `json:"standing"`
	Accessible bool   `json:"accessible"`
	PriceClass string `json:"priceClass"`
	Amount     int64  `json:"amount"`
	State      string `json:"state"`
	Code       string `json:"code,omitempty"`  // of a valid ticket: what its QR code says
	QRURL      string `json:"qrUrl,omitempty"` // of a valid ticket
}

// paymentStatus says a payment's state as a page does. A payment nobody has told
// us about is "checking": the fan may have paid and the news be on its way.
func paymentStatus(state string) string {
	switch state {
	case payment.PaymentCaptured:
		return "paid"
	case payment.PaymentFailed:
		return "failed"
	case payment.PaymentRefundDue:
		return "refunding"
	case payment.PaymentRefunded:
		return "refunded"
	}
	return "checking"
}

func (s *Server) bookingDoc(b payment.Booking) bookingDoc {
	d := bookingDoc{
		BookingID: b.ID, ShowtimeID: b.ShowtimeID, HoldID: b.HoldID, State: b.State, Reason: b.Reason, Seats: b.Seats,
		Amount: b.Amount, RefundedAmount: b.RefundedAmount, Currency: b.Currency,
		CreatedAt: stamp(b.CreatedAt), HoldExpiresAt: stamp(b.HoldExpiresAt),
		Showtime: playDoc{
			Title: b.Showtime.Title, Subtitle: b.Showtime.Subtitle, Venue: b.Showtime.Venue, City: b.Showtime.City,
			Timezone: b.Showtime.Timezone, Room: b.Showtime.Room, StartsAt: stamp(b.Showtime.StartsAt),
		},
		Places:  make([]placeDoc, 0, len(b.Places)),
		Tickets: make([]ticketDoc, 0, len(b.Tickets)),
	}
	for _, p := range b.Places {
		d.Places = append(d.Places, placeDoc{
			Seat: p.SeatCode, Section: p.Section, Row: p.Row, Number: p.Seat, Standing: p.Standing,
			PriceClass: p.PriceClass, Amount: p.Amount,
		})
	}
	if !b.ConfirmedAt.IsZero() {
		at := stamp(b.ConfirmedAt)
		d.ConfirmedAt = &at
	}
	if p := b.Payment; p.ID != "" {
		d.Payment = &paymentDoc{
			PaymentID: p.ID, State: p.State, Status: paymentStatus(p.State), PaymentURL: p.URL, ExpiresAt: stamp(p.ExpiresAt), Reason: p.Reason,
		}
	}
	for _, t := range b.Tickets {
		doc := ticketDoc{
			TicketID: t.ID, Seat: t.SeatCode, Section: t.Section, Row: t.Row, Number: t.Seat, Standing: t.Standing,
			Accessible: t.Accessible, PriceClass: t.PriceClass, Amount: t.Amount, State: t.State,
		}
		if t.State == payment.TicketValid {
			doc.Code = s.ticketCode(b.ShowtimeID, t)
			doc.QRURL = fmt.Sprintf("/v1/bookings/%s/tickets/%s/qr.svg", b.ID, t.ID)
		}
		d.Tickets = append(d.Tickets, doc)
	}
	return d
}

// withoutCodes is the booking for the box office: whoever refunds a ticket need
// not be able to use it.
func (d bookingDoc) withoutCodes() bookingDoc {
	for i := range d.Tickets {
		d.Tickets[i].Code, d.Tickets[i].QRURL = "", ""
	}
	return d
}
