// Package sandbox is the adapter to Usher's own practice provider, whose server
// is package sandboxhttp. Nothing in it moves money.
//
// Decisions:
//   - Callbacks are signed in the manner of Standard Webhooks (headers webhook-id,
//     webhook-timestamp, webhook-signature; HMAC-SHA256 over "id.timestamp.body").
//     The signature is checked over the bytes as they arrived: decoding and encoding
//     again would change them. Several secrets are valid at once, so that one can be
//     replaced without losing a callback.
//   - The event's identity is its signed webhook-id, not a field of the body: it is
//     what a repeated delivery has in common with the first.
//   - The server answers 4xx for what it will never do; that becomes
//     payment.ErrRefused or ErrNotKnown, which neither open the breaker nor are worth
//     asking again. 401 and 403 are not about the payment but about our key: they
//     become payment.ErrNotAllowed, and whatever was asked stays undecided. Everything
//     else is silence to the caller.
package sandbox
