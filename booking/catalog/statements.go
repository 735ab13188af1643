package catalog

// Rows are locked FOR NO KEY UPDATE: what refers to a room or a showtime (a session
// that begins, a booking) locks its key alone and does not wait for an apply.
const (
	sqlApplyLock = `SELECT pg_advisory_xact_lock($1)`
	sqlAudit     = `INSERT INTO audit_log (actor, action, subject, detail) VALUES ($1, 'catalog.apply', $2, $3)`
	sqlClock     = `SELECT clock_timestamp()`

	sqlNewRoom = `
		INSERT INTO room (room_id, title, mode, state, valve, rate_per_minute, cap, opens_at, gathers_at, timezone, priority_share)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, COALESCE($11, 30)) ON CONFLICT (room_id) DO NOTHING`
	sqlLockRoom = `
		SELECT state, title, mode, valve, rate_per_minute, cap, opens_at, gathers_at, timezone, priority_share
		  FROM room WHERE room_id = $1 FOR NO KEY UPDATE`
	sqlChangeRoom = `
		UPDATE room SET title = $2, mode = $3, valve = $4, rate_per_minute = $5, cap = $6, opens_at = $7,
		       gathers_at = $8, timezone = $9, priority_share = $10,
		       version = GREATEST(version + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint), updated_at = clock_timestamp()
		 WHERE room_id = $1`

	sqlLockVenue   = `SELECT name, city, timezone FROM venue WHERE venue_id = $1 FOR NO KEY UPDATE`
	sqlNewVenue    = `INSERT INTO venue (venue_id, name, city, timezone) VALUES ($1, $2, $3, $4)`
	sqlChangeVenue = `UPDATE venue SET name = $2, city = $3, timezone = $4 WHERE venue_id = $1`
	sqlNewLayout   = `
		INSERT INTO layout (layout_id, venue_id, shape) VALUES ($1, $2, $3)
		ON CONFLICT (layout_id) DO NOTHING`

	sqlLockEvent = `
		SELECT venue_id, title, subtitle, kind, currency, max_per_hold, COALESCE(max_per_customer, 0),
		       limit_scope, hold_seconds
		  FROM event WHERE event_id = $1 FOR NO KEY UPDATE`
	sqlNewEvent = `
		INSERT INTO event (event_id, venue_id, title, subtitle, kind, currency, max_per_hold,
		                   max_per_customer, limit_scope, hold_seconds, source_digest)
		VALUES ($1, $2, $3, $4, $5, $6, $7, NULLIF($8, 0), $9, $10, $11)`
	sqlChangeEvent = `
		UPDATE event SET venue_id = $2, title = $3, subtitle = $4, kind = $5, currency = $6, max_per_hold = $7,
		       max_per_customer = NULLIF($8, 0), limit_scope = $9, hold_seconds = $10, source_digest = $11
		 WHERE event_id = $1`
	sqlHasShowtimes = `SELECT EXISTS (SELECT FROM showtime WHERE event_id = $1)`

	sqlLockPrice = `SELECT name, amount, color FROM price_class WHERE event_id = $1 AND code = $2 FOR NO KEY UPDATE`
	sqlPutPrice  = `
		INSERT INTO price_class (event_id, code, name, amount, color) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (event_id, code) DO UPDATE SET name = $3, amount = $4, color = $5`
	sqlDropPrices = `
		DELETE FROM price_class p
		 WHERE event_id = $1 AND code <> ALL ($2)
		   AND NOT EXISTS (SELECT 1 FROM showtime s JOIN layout_seat l USING (layout_id)
		                    WHERE s.event_id = $1 AND l.price_class = p.code)
		RETURNING code`

	sqlLockShowtime = `
		SELECT event_id, room_id, layout_id, scope_id, starts_at
		  FROM showtime WHERE showtime_id = $1 FOR NO KEY UPDATE`
	sqlNewShowtime = `
		INSERT INTO showtime (showtime_id, event_id, room_id, layout_id, scope_id, starts_at)
		VALUES ($1, $2, $3, $4, $5, $6)`
	sqlChangeShowtime = `
		UPDATE showtime SET room_id = $2, layout_id = $3, scope_id = $4, starts_at = $5 WHERE showtime_id = $1`
	sqlLeftOver = `SELECT showtime_id FROM showtime WHERE event_id = $1 AND showtime_id <> ALL ($2) ORDER BY 1`

	sqlAddSeats = `
		INSERT INTO show_seat (showtime_id, seat_code)
		SELECT $1, seat_code FROM layout_seat WHERE layout_id = $2 ORDER BY seat_code
		ON CONFLICT DO NOTHING`
	goingSeats = ` FROM show_seat q
		 WHERE showtime_id = $1
		   AND NOT EXISTS (SELECT 1 FROM layout_seat l WHERE l.layout_id = $2 AND l.seat_code = q.seat_code)`
	sqlLockGoing = `SELECT 1` + goingSeats + ` ORDER BY seat_code FOR UPDATE OF q`
	sqlBusyGoing = `SELECT seat_code || CASE status WHEN 'BOOKED' THEN ' (booked)' ELSE ' (held)' END` + goingSeats + `
		   AND (status = 'BOOKED' OR (status = 'HELD' AND hold_expires_at > clock_timestamp()))
		 ORDER BY seat_code`
	sqlDropSeats = `DELETE` + goingSeats

	sqlPrices = `
		SELECT code, name, amount, color FROM price_class
		 WHERE event_id = $1 ORDER BY amount DESC, code`
	sqlEventShowtimes = `
		SELECT s.showtime_id, s.room_id, s.layout_id, s.starts_at, count(q.seat_code),
		       count(*) FILTER (WHERE q.status = 'HELD' AND q.hold_expires_at > clock_timestamp()),
		       count(*) FILTER (WHERE q.status = 'BOOKED')
		  FROM showtime s LEFT JOIN show_seat q USING (showtime_id)
		 WHERE s.event_id = $1
		 GROUP BY s.showtime_id ORDER BY s.starts_at, s.showtime_id`
)

// statements lists every SQL text of this package by name: one test prepares each
// against the migrated schema. Add yours here.
var statements = map[string]string{
	"sqlApplyLock": sqlApplyLock, "sqlAudit": sqlAudit, "sqlClock": sqlClock,
	"sqlNewRoom": sqlNewRoom, "sqlLockRoom": sqlLockRoom, "sqlChangeRoom": sqlChangeRoom,
	"sqlLockVenue": sqlLockVenue, "sqlNewVenue": sqlNewVenue, "sqlChangeVenue": sqlChangeVenue, "sqlNewLayout": sqlNewLayout,
	"sqlLockEvent": sqlLockEvent, "sqlNewEvent": sqlNewEvent, "sqlChangeEvent": sqlChangeEvent, "sqlHasShowtimes": sqlHasShowtimes,
	"sqlLockPrice": sqlLockPrice, "sqlPutPrice": sqlPutPrice, "sqlDropPrices": sqlDropPrices,
	"sqlLockShowtime": sqlLockShowtime, "sqlNewShowtime": sqlNewShowtime, "sqlChangeShowtime": sqlChangeShowtime, "sqlLeftOver": sqlLeftOver,
	"sqlAddSeats": sqlAddSeats, "sqlLockGoing": sqlLockGoing, "sqlBusyGoing": sqlBusyGoing, "sqlDropSeats": sqlDropSeats,
	"sqlEvents": sqlEvents, "sqlPrices": sqlPrices, "sqlEventShowtimes": sqlEventShowtimes,
}
