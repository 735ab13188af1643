package bookinghttp

import (
	"time"

	"usher/booking/payment"
	"usher/internal/basehttp"
)

// paymentProblems are the rows of package payment; those of package booking
// that come through it are in problems.
var paymentProblems = []problemRow{
	{is: payment.ErrUnknownBooking, problem: problem(404, "unknown-booking", "There is no such booking")},
	{is: payment.ErrUnknownTicket, problem: problem(404, "unknown-ticket", "There is no such ticket")},
	{is: payment.ErrInProgress, problem: problem(409, "idempotency-in-progress", "A request with this Idempotency-Key is being worked on"), more: againIn(time.Second)},
	{is: payment.ErrSignature, problem: problem(400, "signature-invalid", "The callback's signature is not valid")},
	{is: payment.ErrProviderDown, problem: problem(503, "payment-unavailable", "Payment is not available at the moment"), more: payAgain},
	{is: payment.ErrNotRefundable, problem: problem(409, "not-refundable", "There is nothing to give back")},
}

func againIn(d time.Duration) func(*basehttp.Problem, error) *basehttp.Problem {
	return func(p *basehttp.Problem, _ error) *basehttp.Problem { return p.After(d) }
}

func payAgain(p *basehttp.Problem, _ error) *basehttp.Problem {
	return p.Detailf("Your seats are still held. Ask again with the same Idempotency-Key: it goes on with the same payment.").After(3 * time.Second)
}
