// Package queue is the line in front of the box office: places, calls, admissions
// and what an edge needs to answer a poll. Redis keeps it, the scripts in lua/
// decide, and this package names the keys, passes the arguments and translates the
// replies. It knows no HTTP and no database: what Postgres knows arrives as
// Settings and Report.
//
// # The life of a place
//
//	          join             call               claim
//	(nothing) ────► waiting ────────► called ─────────────► admitted ──► expired
//	                   ▲  │ leave       │  │ claim, no slot     report or lease
//	                   │  └────► left   │  └──► standing by ──► admitted by call
//	                   └────────────────┘ window over, or the pass unused: expired;
//	                                      joining again gives the place back, once
//
// Calling is inviting; admission is the claim. call.lua runs on every edge each
// tick and elects nobody. It keeps invitations out, taken from the head, and
// grants slots to those standing by. claim.lua admits at once when there is a slot,
// the rate's turn has come and nobody earlier stands by; else the fan stands by,
// cannot miss the call any more and is granted a slot in order of arrival.
//
// # Decisions
//
// Scores are arrival times in µs by Redis' clock, each above the last one and above
// the highest any asking edge has seen: a failover that lost a second, or a clock
// that went back, makes no tie and no inversion. They are integers below 2^53 and
// become text by '%.0f' only.
//
// Pace is GCRA without burst over the instants of admission, and those standing by
// are granted ahead, up to two and a half ticks: the instant is in the slot, and the
// pass cannot be had before it. So the rate is exact in every window whoever polls
// when; a late tick makes no gap; a pause stops admissions within half a second of
// its last look ahead. The last instant is remembered, not the next one, so that a
// raised rate counts at once. The spacing is rounded up to a quarter of a µs, the
// grain of a double at this magnitude: at most 0.5 % below a rate of a million a
// minute, and never above.
//
// Invitations go out until as many fans are expected to come as the free slots and
// ten seconds of the rate can take. An invitation unanswered for ten seconds counts
// only as much as late ones have been worth lately. Counted in full until the window
// ends, those who never come would fill the quota: with 30 % of them at 30 a minute
// less than a third of the rate would be reached. Too many invitations cost only
// standing by; cap and rate are kept at the claim and by nothing else.
//
// A missed call is forgiven once: joining again gives the old score back, a second
// miss leads to the tail. A slot that came to nothing is the same thing: whoever
// stands by is admitted without asking again, and may be away when the pass comes, or
// its reply may be lost. Leaving and finished visits lead to the tail. During a
// pause, or without reports, no invitation runs out, and after either each gets a
// whole window more. A fan who claims during them stands by.
//
// A slot is a lease of pass.SlotLease: the pass' life, the leeway after it and the
// longest session. An admitted fan asks for the pass as often as needed and gets the
// same one, as its id is made of place and instant. Only PutReport frees a slot early,
// and only as it was read; while reports come, an unused one goes some seven seconds
// after its pass expired. Within these seconds, and as long as no report comes, an
// expired pass is renewed under the same id, at most five times, and the lease with it:
// a session may begin as late as the pass ends and must not outlive its slot. A fan who
// asks later finds the place expired, joins again, and has the place of before.
// Leaving the line does not free a slot either.
//
// Modes: fifo; draw, below; reject takes no new places and admits nobody; passthrough has no
// line: a join is called at once, its claim admits at once, cap, rate and reports
// ignored, and whoever waited before is let in as they claim. A room in any state
// but closed and scheduled takes places, so that no program stands ahead of those who
// were told that the doors are shut; only in open it calls. A reset (Run raised) ends all
// places, but no visit.
//
// What a new place costs (Fan.Toll: limits and proofs of work, packages limits and
// proof) is decided in join.lua behind everything that finds a place: whoever has one,
// or gets one back, is neither limited nor asked to pay, and failing costs no place.
//
// The place token holds everything a pass needs, so that a claim reads nothing but
// the line. The member is a hash of room and fan, the customer one of the fan; neither
// uses a secret, because a rotated secret must not make a fan a stranger. Both are
// safe to show as long as the fan's id is hard to guess: cookies are 128 random
// bits; an API client should use a random Idempotency-Key.
//
// Revocations come from the bridge as one list by version, and each edge keeps it in
// memory: it reads it when the board shows another version, so a poll asks nothing for
// it. An edge obeys within its board's second; booking, which decides, before that. A
// place named leaves the line as the list comes; a customer's when they next ask, as
// the line does not know whose a member is. "Everybody admitted before an instant"
// frees the slots whose passes can open no session any more, and who was inside finds
// the place of before by joining again, once, as after a missed call; an admission's
// instant counts by its whole second, as in the pass.
//
// An invite is a signed number of places for whoever brings its token, not for a
// person. Such a place scores 2^52 below the time of its arrival, below zero: it is
// called before all who came by themselves, in order of arrival among its like, and
// cap, rate, positions and waits need to know nothing of it. Who is in line already and
// brings one moves ahead; one place of the quota goes to a member once, so that leaving
// and coming back by it costs no second. The count is in Redis alone: losing Redis
// begins it anew. Where there is no line (passthrough) an invite is not counted.
//
// An invite of the other kind leads into the priority line, a line beside the line with
// a share of the calls. Such a place scores 2^52 above the time of its arrival, so its
// score, and with it the token, tells the line everywhere, and a loss of Redis puts it
// back where it was. While somebody waits in both lines, of n calls n × share / 100 are
// the priority line's, rounded down: what the rounding leaves over is kept from step to
// step, so that it is exact over time and never off by more than one call, however the
// steps fall (share.lua). An empty line leaves its calls to the other and is owed nothing
// for it, so no slot stays empty, and a share of 0 serves the priority line only when
// nobody else waits. Invited fans ahead of the line are called before either and count in
// neither share. Cap and rate know nothing of all this: the share is of calls, and a
// called fan is a called fan. Who stands by is granted in the order of the calls, as the
// two lines' scores cannot be compared.
//
// Each line has its own positions, and a place's is the one in its own line: it falls
// only, whatever the other does, which a number over both could not promise without
// knowing who joins later. What the other line means for the wait is told by the range:
// at the least those who wait there now come before, as far as the share lets them, at
// the most as many as it lets in if that line never empties. The watermarks are two, and
// so are the samples on the board; "waiting" counts both lines. An invite moves a
// fan who waits to a better line only: ahead, priority, line; the priority line is none
// while it has no share. In a room that gathers for a draw its fans
// line up by arrival all the same, take no part in the draw, and get their number when
// the others get theirs.
//
// A customer whom an integrator names (package customer) has one place in a room: the
// member is a hash of room, issuer and subject, the customer one of issuer and subject,
// and no browser is part of either. Each of their browsers has a token of its own, which
// differs by the binding. All claims lead to one slot and one pass id; the pass is bound
// to the browser that asked, and booking makes one session of whichever comes first.
//
// A place moves to another browser by a code (move.lua): one step, in which the score,
// the end of the call and the standing by stay what they are, and the member becomes the
// new browser's. The customer moves along, in the token and beside it in Redis, so that
// limits do not begin anew however the new browser comes to its token. A code is 50 bits
// for ten minutes and one browser, and the line keeps its HMAC; where the browser asks
// again, the reply was lost. A kept code serves until the room closes: a place without
// cookies lives in it, also inside, as whoever has it has the place. A place that moves
// leaves no code behind, so that the old device cannot take it back. A known customer's
// code adds a device, as the place is no browser's. While a draw is drawn nothing moves,
// for its list names members. Losing Redis loses the codes, and no place.
//
// # The draw
//
// A room of mode draw gathers first: places have no number, and when one joins makes no
// difference. At the opening the order is drawn, usher-draw-1:
//
//	commitment = SHA-256("usher-draw-1\n" room "\n" run "\n" hex(seed) "\n")
//	digest     = SHA-256(list), the list being hex(place) "\n" for each, by arrival
//	key        = HMAC-SHA256(seed, digest ‖ public value)
//	score      = the first 50 bits of HMAC-SHA256(key, place); equal ones by the place
//
// The seed is 32 random bytes of the room's row. The commitment is published as soon as
// the room is known; the seed reaches Redis when the drawing begins (PutSettings refuses
// it before) and the public when it is done. So fans cannot aim at a number: they do not
// know the seed, and a single other entry changes every number. The operator cannot
// exchange the seed, but knows it: whoever knows it and adds entries in the last moment
// could try some and keep the best. Against that helps a public value that nobody knows
// while there is time to try, as a lottery's number of that evening, announced before the
// draw. Everything but the public value is text or 32 bytes, so that sha256sum and
// openssl check a draw as well as this package's functions (draw.go).
//
// Any edge draws, in steps of bounded length (lua/draw.lua): it reads who gathered, up to
// the cut, the highest score at the first step; digests the list; and writes each place's
// score. Steps start from a cursor and are compared with it, so edges may work at once
// and stop anywhere. A drawn score lies below every time of arrival: who joins during the
// drawing or later is behind all drawn, in order. Who left is in the list and not in line.
// Postgres keeps result and list, and opens the room; a Redis that lost them gets them
// back, and calls nobody before. The watermark falls to zero at the draw, in Redis and on
// each edge: it compares scores, and those called later have lower ones than before.
// Tokens of the gathering serve on: their score of arrival, at or below the cut, is
// translated by memory (board.current), and the next poll gets a token with the drawn one.
//
// # Losing Redis
//
// A failover forgets the last second, a flush everything. Neither may cost a place or
// admit one fan too many, and nobody is elected to notice. The state keeps the number
// of its memory (the incarnation, µs), and k_edges for each edge a mark, which is moved on
// by every answer to it that must not be forgotten: looks, steps, places, admissions. Each
// script is sent what its edge has seen of both, and of the scores; a memory that shows
// less, or another one that says nothing of a loss, begins a recovery in that very step,
// before it admits anybody. One mark for all edges would not do: those that look first at
// the new memory would move it past what another was told. A mark that comes twice tells
// of a loss while calls were under way. A token of a place above every score this memory
// has given out tells of one too; a token from before the memory began does not, as it may
// be of a rehearsal. What was told by an edge that ended together with the old memory, the
// bridge notices (an admission), or the token (a place), unless others have given out
// higher scores by then: its fan joins at the tail. Restarted edges find the recovery in
// Redis. A room with marks of 200 edges drops those that have not looked for a week. When Redis and all
// edges restart together, only Postgres remembers: settings of the bridge (Guard) make
// an empty memory begin in recovery, the bridge records each incarnation in the audit
// log, and ends the recovery at once only if there was none before and nobody has ever
// been inside. A first start waits for no more than a turn.
//
// In a recovery nobody is called, and nobody is admitted but who is inside. It lasts
// until every pass of before has run out (pass life, leeway and four seconds) and a
// report that was read after that has come, from a bridge that has told every place
// used in the last 30 days. No call runs out meanwhile, nor in the claim window after, and
// whoever answers one stands by. Places that the memory has kept stay in line, whatever
// visit of theirs is told that it knew of. Living sessions become slots again, with the longest lease
// they could have; this goes on outside a recovery too, for losses too small to notice.
// A loss that no edge saw (the edges died with it, the bridge did not) and that took
// only admissions shows by their sessions alone.
//
// A place comes back when its token is shown, by a poll, a claim or a join, then and
// as long as the memory lasts: at its signed score, or the drawn one, if it is nowhere,
// was not left, and not served since (5 s are allowed between the clocks of Redis and
// Postgres). Called fans are called again, by score. Newcomers get scores above the
// loss, so behind all who come back. Fans see their last number meanwhile; 0 is told
// when there is none. What Redis alone knew is forgotten: a place that was left or moved
// comes back if its old token is shown, a missed call is forgiven again, an invitation
// starts anew. After a loss each fan's first poll at an edge asks Redis once. The rate
// starts afresh: the hold is longer than any spacing that could matter.
//
// A client of a Redis Cluster sends a script again when a node does not answer; that
// and lost replies are why every script may run twice. Rooms lie on different nodes and
// fail apart: looks, calls and the bridge's reports do not wait for a room whose node is
// silent (internal/rounds), and each room has round trips of its own for joins and claims.
//
// # Polls
//
// A board is one reading of a room, immutable, read each second. A poll checks its
// token against a cache of verified ones and is answered from the board: exact for
// the first thousand, interpolated between 256 samples behind. Redis is asked once
// for a place at or below the watermark (it may have been called), one that left or
// moved, and one younger than the board. The watermark comes with each tick's call, so
// a page hears of its call within a tick and a poll. Positions shown never grow: the caller
// sends the last one it showed under the same token. Without Redis the last board is told
// and flagged; claims and joins fail, as memory never grants.
//
// Every structure but the line is bounded: places that left (10,000, of which the
// 2,000 next to be called are shipped to edges; a fan further back who left and asks
// with the old token may be told a number), forgivable misses (50,000). A waiting fan costs one
// member of one sorted set. No script loops over the line, each stays in the room's
// hash slot, and each may run twice: the client sends a script again when a reply is lost.
//
// # Ten million, and regions
//
// Measured are one and two million (make million, make million MILLION=2000000); this is
// reckoned from them and not built.
//
// A room lives in one hash slot, so on one core of one Redis. Memory is not what ends
// it: 125 bytes a fan are 1.3 GB at ten million, and a board costs a thousand ranks and
// 256 lookups, which grow with the logarithm alone. Polls are edges' work: ten million
// who ask each 60 seconds are 170,000 a second, three processors at the rate of make
// bench. Joins are the limit: one core takes some 20,000 a second, with limits and
// proofs less, so ten million who press in the same minute wait up to ten for their
// number. Their order would be right all the same (the script's clock, in the order of
// arrival at Redis), and the edges pipeline and answer slowly; that is the first remedy:
// gathering (a draw) takes the hurry away. The second is to cut the line: K slots
// {room/k}, a fan in the one of their id, each script's µs as score. Positions become
// sums of K boards, still from memory; the caller takes the lowest heads of K, so two
// heads that lie closer than the clocks of two nodes may change places: today's exact
// order would hold within a slot and within that skew between them. The cap and the
// rate stay in one slot, where claims are, which are rare. A draw of ten million takes
// ten times a million's seconds, and its list of entries 160 MB in one string (Redis
// ends at 512 MB): it would go in parts. A recovery does not grow: places come back with
// the polls of their fans.
//
// Across regions a room has one home. Edges elsewhere answer polls from their boards at
// the cost of one reading a second, whatever the distance; a join or a claim pays one
// round trip. A far fan's place is so late by half that trip (50 to 150 ms): it is
// reported here and not corrected, as a stamp by the edge would make every edge's clock
// part of the order. Who minds that draws. A replica in another region that becomes the
// master is a failover like any: what replication had not shipped is put back by the
// tokens. Booking's Postgres has one home, too, and the bridge runs beside it.
package queue
