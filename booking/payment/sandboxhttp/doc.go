// Package sandboxhttp is a payment provider to practise with: a server of its own
// with an API for the merchant, a payment page for the fan, and signed callbacks.
// No money moves. It is the tests' oracle for what goes wrong with real ones.
//
// On the page the fan chooses what happens:
//
//	paid        the money is taken, the callback delivered
//	declined    the card is refused, the callback says so
//	paid-twice  taken once, the same callback delivered twice at the same moment
//	paid-late   the page returns at once; the money is taken, and the callback sent,
//	            LateBy after the payment page's own expiry (or after delaySeconds)
//	never       the money is taken and no callback is ever sent
//
// Decisions:
//   - The payment's id is 128 random bits; the page is found only by it.
//   - The page sends the fan to the address the merchant gave in an authenticated
//     call, and to no other: nothing in the page's own request can change it.
//   - A payment that is being paid late reads "processing": it cannot be expired and
//     is not final, exactly the state in which a merchant must not let go.
//   - Callbacks are tried with growing pauses until a 2xx, DeliverAttempts times, and
//     are signed anew each time under one webhook-id.
//   - A refund never exceeds what was taken; one key is one refund.
//   - State is in memory and, with Options.File, in a file of JSON lines, one per
//     change, the last line of a payment being its state.
package sandboxhttp
