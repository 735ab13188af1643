// Package payment turns a paid hold into a booking with tickets, and gives money
// back wherever it cannot.
//
// # States
//
//	booking   PENDING → CONFIRMED → REFUNDED      PENDING → FAILED
//	payment   PENDING → CAPTURED → REFUND_DUE → REFUNDED
//	          PENDING → FAILED → REFUND_DUE → REFUNDED   (money came after all)
//	          PENDING → FAILED → CAPTURED                (the same, while the hold lives)
//	          PENDING → REFUND_DUE → REFUNDED            (money came, seats did not)
//
// At any instant, for every booking: captured = what is booked + what is refunded
// or due to be.
//
// # Decisions
//
//   - The provider is called outside transactions only. What was decided is
//     committed first, with the key under which the provider will be asked (the
//     payment's id, the refund's id); so a crash between the two is repaired by
//     asking again with the same key, never by guessing.
//   - One path, settle, applies what the provider says, whoever brought it: the
//     callback and the reconciler differ only in how they learn of it. It locks
//     payment, booking, seats by key, hold, and only then reads the database's clock:
//     a clock read before a wait confirms holds that expired during it.
//   - A booking is confirmed by hold id and only with every seat of the hold. The
//     same fan's new hold of the same seats is another hold: its predecessor's money
//     does not buy it.
//   - Nothing is confirmed for a revoked fan: settle takes the fence that revocations
//     wait at, and judges the hold by a statement that reads them. Money that comes all
//     the same takes the late path: the booking fails (revoked), one refund. What was
//     CONFIRMED before stays; giving it back is the box office's to order.
//   - A callback is remembered by the provider's event id in the transaction that
//     applies it. A twin waits on that row, so no 2xx is given before the effect is
//     durable.
//   - One hold has one booking, whatever the number of attempts. An attempt that
//     can still be paid is answered again to any key, so there are never two open
//     payment pages for one hold; a declined or expired one is followed by the next
//     attempt under a new provider key, also when the caller's key is the one that
//     opened it: the fan's page keeps one key a hold, and an answer with a dead page
//     would leave it nothing to do. The key's new answer replaces the old one. A key
//     whose booking was paid keeps its answer for good. Should two be captured all the same (a page
//     paid at its last moment), the second goes back.
//   - The payment page closes before the hold ends (8 of 10 minutes), which leaves
//     the reconciler time to confirm what a lost callback did not. It asks about
//     payments past their page's time or their hold's, and about any older than 15
//     minutes; it claims a payment by checked_at and holds no lock while it asks.
//   - Pressing pay does not lock the fan in. Releasing a hold with an open page has
//     the provider close the page first and believes its answer alone: expired or
//     declined frees the seats at once and fails the booking (hold-released); paid,
//     on its way, or no answer leaves everything as it was. Leaving altogether (the
//     session's end) does not ask: holds in payment stay until they expire.
//   - "Not known" from the provider is an alarm for a payment it has opened, not a
//     word about money: the payment stays undecided, "checking" to the fan, for
//     GiveUpAfter (24 h). Only one that was never opened, past its time, is unpaid at
//     once. Refused credentials (401, 403) decide nothing either.
//   - Checkout asks for no particular room: the hold proves the fan's right to its
//     seats, and whoever has entered another room since has that one's session.
//   - An amount or currency other than asked for is never partly accepted: the booking
//     fails, the seats are free and everything taken goes back.
//   - Refunds are rows and jobs written in the transaction that decides them. Their
//     job may run any number of times. Should the job queue give one up, the
//     reconciler orders it again, for ever: money owed is not dropped. A job whose
//     process died in the middle is taken up again after five minutes.
//   - Giving back tickets locks the payment first, so two orders for one booking
//     are decided one after the other and never exceed what was paid. Tickets share
//     the booking's amount exactly.
//   - A checkout's key is a row committed before the provider is called. A key whose
//     owner died is free after its lease; after a provider's failure at once. A key
//     used before with another body is named as that (422) even when the new body is
//     badly shaped (400): a program would correct the body and try the spent key.
//   - The breaker counts silence and refused credentials, not refusals, and there are no retries in the call:
//     each caller has a durable way to ask again.
package payment
