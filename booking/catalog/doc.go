// Package catalog imports what is on sale from one declarative file: waiting
// rooms, venues with their seats, events with prices, limits and showtimes.
//
// # The file
//
// YAML, complete in itself: whatever it refers to, it holds. Parse reports every
// fault at once, each with its line; a file with a fault changes nothing.
//
//	rooms:
//	  - id: cinema                  # slug
//	    title: Lantern House, Hall 1
//	    mode: fifo                  # fifo (default) | draw | passthrough | reject
//	    state: open                 # only for a room that does not exist yet (default open)
//	    valve: fixed                # fixed (default) | adaptive
//	    ratePerMinute: 300          # ceiling of admissions
//	    cap: 150                    # ceiling of fans inside at once
//	    priorityShare: 30           # percent of the calls for the priority line while both wait (default as it is)
//	    timezone: Europe/Lisbon     # IANA name: the event's clock (default UTC)
//	    gathersAt: 2026-12-01 09:00 # mode draw only: places are given from then on
//	    opensAt: 2026-12-01T10:00:00Z   # optional; mode draw is drawn then
//	venues:
//	  - id: lantern-house
//	    name: Lantern House
//	    city: Porto
//	    timezone: Europe/Lisbon     # IANA name
//	    seatCodes: "{row}{seat}"    # default "{section}-{row}-{seat}"
//	    stage: {kind: screen, label: Screen, at: [0, 0], size: [18, 0.6]}  # screen | stage | pitch
//	    bowl: {size: [76, 120], corner: 30}   # only for sections that lie around it
//	    sections:
//	      - id: Hall
//	        label: Hall             # default the id
//	        price: standard         # default for every band
//	        rows: A-M               # one band of equal rows ...
//	        seats: 1-16
//	        aisleAfter: [4, 12]
//	        accessible: [A1, A2]    # seat codes
//	        missing: [M8, M9]       # places in the row where no seat stands
//	        at: [0, 5]              # middle of the first row; see Geometry
//	events:
//	  - id: lantern-nights
//	    venue: lantern-house
//	    title: The Salt Road
//	    subtitle: ""
//	    kind: cinema                # cinema | stadium
//	    currency: EUR               # ISO 4217
//	    limits: {maxPerHold: 8, maxPerCustomer: none, limitScope: showtime, hold: 10m}
//	    prices:
//	      standard: {name: Standard, amount: 1250, color: "#5b7cfa"}   # minor units
//	    showtimes:
//	      - {id: cinema-evening, room: cinema, startsAt: +21d 20:00}
//
// Instead of one band, rows may be a list of bands, front to back, each with rows,
// seats, and as it likes aisleAfter, price, accessible (seat labels, in each of its
// rows), shift (positions sideways) and xy (explicit points, for a band of one row):
//
//	rows:
//	  - {rows: A-C, seats: 1-12, price: front}
//	  - {rows: D-M, seats: 1-16, aisleAfter: [4, 12]}
//
// Ranges are A-M, AA-AF, 1-16, 16-1, a step as in 1-15/2, and lists of these with
// commas: "1-15/2, 16-2/2" is odd upward, then even downward. A row label names a
// row once in its section; a label says nothing about neighbourhood, the place in
// the list does.
//
// A standing area is a section with standing: 1500 (places) and size: [w, h]; at is
// its middle. Each place is a seat ID-0001 with an empty row label.
//
// gathersAt and opensAt are instants with their offset, or times on the clock of the
// room's timezone. A time that does not exist because clocks are put forward is
// refused, and so is one that happens twice because they are put back: write its
// offset. A room of mode draw begins scheduled, if state does not say closed.
//
// startsAt is an instant with its offset (2026-12-24T20:00:00+01:00), a time on the
// venue's clock (2026-12-24 20:00), or for demonstrations +21d 20:00, which is
// counted from the day of the first apply and then stays as stored.
//
// # Geometry
//
// One unit is the distance of two neighbouring seats; x grows rightwards, y away
// from the stage. Rows lie
//
//   - straight: at: [x, y] is the middle of the first row; turn: degrees turns the
//     section about that point;
//   - curved: the same with curve: radius of the first row;
//   - around the bowl, a rounded rectangle about [0, 0] (a circle when corner is half
//     its size): around: {from: 0.06, to: 0.94, offset: 2, gap: 1.5}. from and to are
//     shares of the bowl's edge, clockwise from the middle of its top; offset is the
//     distance of the first row from that edge. With ids: A-V instead of id, that
//     stretch is divided among that many sections, gap apart; prices: {A-C: front}
//     then sets the price of some of them. seats: fit puts as many as there is room for.
//
// rowPitch (default 1.1) is the distance between rows.
//
// # Applying
//
// Apply is one transaction and idempotent; a second time it reports that nothing
// changed. The file wins for everything it says, a room's rate, cap, mode, valve,
// title and opening included: whoever tunes a rate in the console and wants to keep it
// writes it into the file too. It never touches the state of a room that
// exists: an operator's pause must survive a deployment. What exists and is not in
// the file is left alone.
//
// A layout is immutable and named by the digest of its content. When a venue's seats
// differ from the layout a showtime has, the showtime moves to the new one: new
// seats are inserted and on sale at once, free seats that are gone are deleted, and a
// gone seat that is sold or under a living hold refuses the whole file by name.
// Readers must therefore not assume that a showtime keeps its layout.
// The currency and the limit scope of an event with showtimes cannot change, nor can a
// showtime move to another event: every process keeps them for a moment, and a take
// writes what it was told. A mistake before the sale is mended by another event.
//
// # Shape
//
// layout.shape is JSON for whoever draws the map. The whole drawing, seats
// included, lies in the box from (0, 0) to (width, height), in the same units as a
// seat's x and y, which are the middle of the seat:
//
//	{
//	  "width": 24.5, "height": 19.2,
//	  "seat": 0.8,                       // side or diameter to draw a seat with
//	  "stage": {"kind": "screen", "label": "Screen", "x": 2, "y": 1, "width": 20, "height": 0.6},
//	  "floor": [[x, y], ...],            // the bowl's edge; absent without a bowl
//	  "sections": [
//	    {"id": "Hall", "label": "Hall", "kind": "seated",   // or "standing"
//	     "outline": [[x, y], ...],       // closed polygon, last point not repeated
//	     "labelAt": [x, y], "seats": 180}
//	  ],
//	  "rows": [{"section": "Hall", "row": "A", "x": 1.2, "y": 4, "turn": 0}]
//	}
//
// stage is absent when the file has none. rows are the places for row labels, beside
// the first seat of each row; turn is in degrees, clockwise. Standing areas have none, nor
// have rows that fill a stretch around a bowl: they would be too many to read.
package catalog
