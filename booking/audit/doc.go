// Package audit holds the invariants of the box office against the database and
// names every row that breaks one. It only reads, in one snapshot, and may run
// beside sales at any time: it locks nothing that a sale waits for.
//
// Constraints of the schema already forbid some of what is looked for here. It is
// looked for all the same: a restored backup, a repair by hand or a migration can
// leave what no constraint was there to stop.
//
// A hold or seat counts as live when its expiry lies after the instant of the
// check, which is read inside the snapshot's transaction, after the snapshot: a hold that
// is live then was live in what the snapshot shows. Taking an earlier
// instant would call a hold live whose seats the snapshot shows resold.
//
// A customer's limit is the event's limit as it is now. When the box office has
// lowered it since, customers who bought before are named; that is then no fault of
// a sale.
package audit
