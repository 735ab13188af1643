// Package booking is the box office: it opens sessions for admission passes, tells
// what is on sale, and takes seats, so that none is ever sold twice and nobody is
// told falsely that something is gone. Postgres holds the truth; memory only
// shows, chooses and spares queries.
//
// # Lanes
//
// A hold is worked by a lane: one goroutine with one connection and a bounded
// queue. Requests go to a lane by the scope their customer limit counts in, so all
// showtimes under one limit share it. A step takes from the queue, in order of
// arrival, requests that share no seat, no customer within a scope and no
// idempotency key; what overlaps is first in the next step. The whole step is one
// transaction in one round trip: BEGIN, the limit rows created and locked in key
// order, take.sql, COMMIT. Nothing is answered before COMMIT is.
//
//   - READ COMMITTED is named in every BEGIN. Under REPEATABLE READ the recount
//     after the lock would use the snapshot from before the wait, and a customer
//     with two tabs would pass the limit.
//   - Seats are locked with SKIP LOCKED. A row that somebody else's transaction
//     keeps delays only who asks for it: 10 ms later that request looks again, until
//     its deadline, and then the answer is ErrBusy. ErrBusy says nothing about seats.
//   - The session's row is locked FOR SHARE, SKIP LOCKED as well, so that nobody ends
//     a session under the hold it is just getting. Who ends one locks its row, and
//     looks at its holds in a later statement, which sees what the take committed.
//   - The update of the seats has no condition but their key. They are locked and
//     judged by their latest version; a condition on the status would be tried on
//     the snapshot's version first and miss a seat released in between. The hold
//     row's CHECK on its seat count undoes the step should the two ever differ.
//   - When the server refuses a step, each of its requests is done alone: a poisoned
//     one fails by itself. When the connection is lost the outcome is unknown,
//     ErrUnavailable: the same fan asking for the same seats, or with the same key,
//     gets the hold if there is one.
//   - A plan made on the first day of a sale, on empty tables, may use any index.
//     take.sql takes the wrong ones away from the planner, and a lane drops its plans
//     once a second.
//
// Limits are recounted (live holds and valid tickets), never stored: a stored
// counter does not expire. The limit row is the lock, and carries the takes of the
// minute: five, counted from the first take of a minute.
//
// # Expiry
//
// An expired hold counts as free in the very statement that looks; every reader
// derives EXPIRED. The sweeper records and reports, nothing waits for it. Only the
// database's clock decides: clock_timestamp() in takes and confirms, remaining
// durations and never instants in what memory keeps.
//
// # Sessions
//
// UNIQUE (jti) decides who has exchanged a pass. A bound pass is good again for who
// knows its binding; any pass for who shows that session's token; to everybody
// else it has been used. A token is the session's id and an HMAC of it: the same
// exchange gives the same token, and the database keeps no secret. A session ends
// at its own time or, when later, with its last hold (up to a minute after it, until
// the sweeper has recorded the expiry), and
// never past the lease the line gave its slot; this is derived from the hold rows,
// so that extending a hold extends the session. Leaving (EndSession) frees the open
// holds and keeps those in payment, for the money may be on its way. A booking ends
// the session unless another hold of it lives.
//
// # Revocations
//
// An operator revokes fans, places, passes, or everybody whose pass was granted before
// an instant. The row in Postgres is the order. Takes and confirms share an advisory
// lock until they commit and read the rows by a later statement; who revokes has the
// lock alone at the commit. So nothing is taken or confirmed after it, whatever this
// process knows: memory (read each 400 ms) only spares the fan a longer way, and ends
// sessions and holds. A transaction that is stuck for 400 ms is not waited for. The
// instant of a pass is its iat, whole seconds: one granted in the very second of
// "everybody before" counts as before.
//
// # Choosing
//
// Best seats are chosen in memory (chooseBest, pure) and then taken like any
// others; who loses chooses again. Alone a fan gets the best there is; in a crowd
// each draws among so many near equals that few meet. Only the database says that
// all is sold (ErrSoldOut); when others merely hold what is left the answer is
// *NoneFreeError. Where any section may be, a section counts as worse by the price of
// its seats: rows are numbered within a section, and the front row of the cheapest
// stand is not the best of a stadium. A wish for more seats than stand together is not split.
//
// # Maps
//
// Layouts are immutable and kept; statuses are read again when they are older than
// a second and somebody asks, once for all who ask, and this process' own commits
// show at once. The document is put together from pieces encoded once, and
// compressed once a version. There is no stream of changes yet: a page asks again
// with the ETag.
//
// # Reports
//
// The line must hear once a second who is inside, or it calls nobody. What is left
// is counted beside the reports and the last count stands when one fails. Seats of
// showtimes that began six hours ago are not counted: nobody sells them any more.
//
// # Order of locks
//
// Everywhere: the fence of revocations (shared), limit rows, seats, hold rows, session; each in key order. Who cannot
// keep it (the sweeper) skips locked rows instead of waiting.
package booking
