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
//   - The payment's id is 128 random bits. Its page is found by it and, so that who
//     has only the shop's answer in hand can pay, by the merchant's reference where
//     that is a UUID of version 4 or 7. A version 7 tells its time and has 74 random
//     bits beside it: nobody finds one by trying, which is enough for a provider that
//     moves no money. A real one should not take the merchant's word for that. The
//     API knows payments by their own id only.
//   - An address without a payment is answered to a browser with a page, to a
//     program with a problem document. The form is taken from its body alone: what
//     stands in the query of an address chooses nothing.
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
