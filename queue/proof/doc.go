// Package proof asks those who join for a proof of work: a number that only
// trying finds, and that one hash checks. The protocol is ALTCHA's (version 1 of its
// documentation, "proof-of-work CAPTCHA": challenge = SHA-256(salt + number), signed
// by HMAC-SHA-256), so that its widget and libraries can pay us; the code is our own.
//
// # Decisions
//
// A challenge is stateless: everything it promises is in its salt, which the
// challenge is a hash of and the signature therefore covers. The salt says until when
// it is good, what it cost, and for whom: a digest of the room and of the fan's id. Who
// presents no id gets one with the refusal, and a challenge for that one and for callers
// without an id of the same address block, as a program may keep no cookies. A proof can
// always be solved elsewhere; bound like this it cannot be sold to whoever comes, because
// it opens the line for one fan in one room. Each is accepted once: the join script leaves a mark.
//
// The salt ends with "&". Without a mark behind it, digits could wander from the
// number into the salt's last parameter, and one solution would make many.
//
// The cost is the largest number to try. It grows with the pressure that the limits
// measure (limits.ProofError): base at pressure 1, where a place beyond the free ones
// is asked for, and sixteen times that at the most. The bounds come from what slow
// phones do in a browser, some 100,000 hashes a second: one second on average is asked
// at base, none waits longer than twenty. A proof for half of what is needed by now is
// taken, as pressure may double while a phone computes.
//
// Whoever cannot compute waits: a ticket names an instant before which it is worth
// nothing. Waiting in parallel is free for a program with many fan ids, so tickets are
// counted by address (limits.Rates.PerWaiter); a refused one stays good.
//
// Keys are derived from the place secrets: they rotate with them, and a challenge signed
// by the secret of before is good as long as that secret verifies.
package proof
