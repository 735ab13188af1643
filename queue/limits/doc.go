// Package limits bounds what one fan, one address, one block of addresses and one
// room may ask for. A bucket is GCRA (the generic cell rate algorithm of ATM, as
// leaky buckets are told by one number): it remembers the instant at which it will
// be empty, in µs by Redis' clock, and is a key that expires at that instant. So
// what is remembered is what happened lately, and a quiet line leaves nothing.
//
// # Decisions
//
// All buckets of one step are checked first and charged after: what one of them
// refuses is charged to none, so that a program knocking at a closed door does not
// keep it closed for its neighbours. New places are charged inside the join script
// (Toll, Lua): a join stays one round trip, and a fan who has a place never comes to
// that line of the script. A join that go-redis sends twice finds the place made by
// the first and is charged once. Allow is charged twice then, by one token: too
// strict by one, never too lax.
//
// In Redis a join with limits takes some 1.6 times as long as one without, and about a
// quarter more with a proof (27, 44 and 54 µs, medians on a busy machine,
// BenchmarkJoinToll). The fan's own bucket therefore counts only whoever left before and
// comes again: newcomers, which are nearly everybody, need no key of their own.
//
// A bucket of a join holds two instants. The hard one refuses (429) far above what
// people do, the calm one measures pressure from much lower on: how many times over
// its free places a bucket is. A university or a phone operator behind one address
// is therefore first asked for a proof of work, which a person's phone pays in a
// second, and which a program of a thousand places pays a thousand times. Pressure
// is capped at 16, so that an address is calm again sixteen times its free allowance
// later and not at the end of the sale.
//
// Addresses count as /32 and /24 (IPv4), /64 and /48 (IPv6): what one line at home and
// one customer of a provider get. They stand in the key names in plain text, for the
// operator who wonders which block is under pressure, and are gone within minutes.
//
// Failures that never reach Redis, as wrong place tokens, are counted in the edge's own
// memory (Local): a flood of them must not become a flood of Redis calls.
package limits
