package audit

// seatInvariants: no seat is sold twice, none is lost, and what the seats say is what
// the holds and tickets say.
var seatInvariants = []invariant{
	{"seat-state", "show_seat", `
		SELECT format('showtime_id=%s seat_code=%s', showtime_id, seat_code),
		       'AVAILABLE with nothing, HELD with hold, customer and expiry, or BOOKED with hold, customer and booking',
		       format('%s hold=%s customer=%s expires=%s booking=%s', status, hold_id, customer_id, hold_expires_at, booking_id)
		  FROM show_seat
		 WHERE NOT COALESCE(CASE status
		       WHEN 'AVAILABLE' THEN num_nonnulls(hold_id, customer_id, hold_expires_at, booking_id) = 0
		       WHEN 'HELD' THEN num_nulls(hold_id, customer_id, hold_expires_at) = 0 AND booking_id IS NULL
		       WHEN 'BOOKED' THEN num_nulls(hold_id, customer_id, booking_id) = 0 AND hold_expires_at IS NULL
		       END, false)`},

	{"seat-once", "show_seat", `
		SELECT format('showtime_id=%s seat_code=%s', showtime_id, seat_code), 'at most one live hold or sale',
		       string_agg(owner, ', ' ORDER BY owner)
		  FROM (SELECT showtime_id, unnest(seats) AS seat_code, 'hold ' || hold_id AS owner
		          FROM hold CROSS JOIN moment
		         WHERE state IN ('OPEN', 'PAYING') AND expires_at > t
		         UNION ALL
		        SELECT showtime_id, seat_code, 'ticket ' || ticket_id FROM ticket WHERE state = 'VALID') o
		 GROUP BY showtime_id, seat_code HAVING count(*) > 1`},

	{"held-seat-has-hold", "show_seat", `
		SELECT format('showtime_id=%s seat_code=%s', s.showtime_id, s.seat_code),
		       'an open hold of the same customer and expiry that names the seat',
		       COALESCE(format('hold %s %s customer=%s expires=%s seats=%s', h.hold_id, h.state, h.customer_id, h.expires_at, h.seats),
		                'no hold ' || s.hold_id)
		  FROM show_seat s CROSS JOIN moment
		  LEFT JOIN hold h USING (showtime_id, hold_id)
		 WHERE s.status = 'HELD' AND s.hold_expires_at > t
		   AND NOT COALESCE(h.state IN ('OPEN', 'PAYING') AND h.customer_id = s.customer_id
		                    AND h.expires_at = s.hold_expires_at AND s.seat_code = ANY (h.seats), false)`},

	{"hold-has-seats", "hold", `
		SELECT format('showtime_id=%s hold_id=%s', h.showtime_id, h.hold_id), 'every seat HELD by it',
		       string_agg(format('%s %s', w.seat_code, COALESCE(s.status || ' hold=' || s.hold_id, s.status, 'missing')), ', '
		                  ORDER BY w.seat_code)
		  FROM hold h CROSS JOIN moment CROSS JOIN LATERAL unnest(h.seats) AS w (seat_code)
		  LEFT JOIN show_seat s ON s.showtime_id = h.showtime_id AND s.seat_code = w.seat_code
		 WHERE h.state IN ('OPEN', 'PAYING') AND h.expires_at > t
		   AND NOT COALESCE(s.status = 'HELD' AND s.hold_id = h.hold_id AND s.hold_expires_at > t, false)
		 GROUP BY h.showtime_id, h.hold_id`},

	{"booked-seat-has-ticket", "show_seat", `
		SELECT format('showtime_id=%s seat_code=%s', s.showtime_id, s.seat_code),
		       'one VALID ticket of the CONFIRMED booking ' || s.booking_id,
		       format('%s valid tickets', count(k.ticket_id))
		  FROM show_seat s
		  LEFT JOIN booking b ON b.showtime_id = s.showtime_id AND b.booking_id = s.booking_id
		       AND b.state = 'CONFIRMED' AND b.customer_id = s.customer_id AND s.seat_code = ANY (b.seats)
		  LEFT JOIN ticket k ON k.showtime_id = b.showtime_id AND k.booking_id = b.booking_id
		       AND k.seat_code = s.seat_code AND k.state = 'VALID'
		 WHERE s.status = 'BOOKED'
		 GROUP BY s.showtime_id, s.seat_code HAVING count(k.ticket_id) <> 1`},

	{"valid-ticket-has-seat", "ticket", `
		SELECT format('showtime_id=%s ticket_id=%s', k.showtime_id, k.ticket_id),
		       'seat ' || k.seat_code || ' BOOKED by the CONFIRMED booking ' || k.booking_id,
		       format('seat %s booking=%s, booking %s', COALESCE(s.status, 'missing'), s.booking_id, COALESCE(b.state, 'missing'))
		  FROM ticket k
		  LEFT JOIN show_seat s USING (showtime_id, seat_code)
		  LEFT JOIN booking b ON b.showtime_id = k.showtime_id AND b.booking_id = k.booking_id
		 WHERE k.state = 'VALID'
		   AND NOT COALESCE(s.status = 'BOOKED' AND s.booking_id = k.booking_id AND b.state = 'CONFIRMED', false)`},

	{"layout-has-seats", "show_seat", `
		SELECT format('showtime_id=%s seat_code=%s', COALESCE(l.showtime_id, s.showtime_id), COALESCE(l.seat_code, s.seat_code)),
		       'the seats of the layout, each once',
		       CASE WHEN s.seat_code IS NULL THEN 'no row for a seat of the layout' ELSE 'a row for no seat of the layout' END
		  FROM (SELECT showtime_id, seat_code FROM showtime JOIN layout_seat USING (layout_id)) l
		  FULL JOIN show_seat s USING (showtime_id, seat_code)
		 WHERE l.seat_code IS NULL OR s.seat_code IS NULL`},

	{"capacity", "showtime", `
		SELECT 'showtime_id=' || showtime_id, 'sold + held at most ' || seats, format('%s sold + %s held', sold, held)
		  FROM (SELECT showtime_id,
		               (SELECT count(*) FROM layout_seat l WHERE l.layout_id = s.layout_id) AS seats,
		               (SELECT count(*) FROM ticket k WHERE k.showtime_id = s.showtime_id AND k.state = 'VALID') AS sold,
		               (SELECT COALESCE(sum(seat_count), 0) FROM hold h WHERE h.showtime_id = s.showtime_id
		                   AND h.state IN ('OPEN', 'PAYING') AND h.expires_at > t) AS held
		          FROM showtime s CROSS JOIN moment) n
		 WHERE sold + held > seats`},

	{"customer-limit", "customer_limit", `
		SELECT format('scope_id=%s customer_id=%s', o.scope_id, o.customer_id), 'at most ' || e.max_per_customer,
		       format('%s sold + %s held', sum(o.sold), sum(o.held))
		  FROM (SELECT b.scope_id, b.customer_id, b.showtime_id, 1 AS sold, 0 AS held
		          FROM ticket k JOIN booking b USING (showtime_id, booking_id) WHERE k.state = 'VALID'
		         UNION ALL
		        SELECT scope_id, customer_id, showtime_id, 0, seat_count
		          FROM hold CROSS JOIN moment WHERE state IN ('OPEN', 'PAYING') AND expires_at > t) o
		  JOIN showtime s USING (showtime_id) JOIN event e USING (event_id)
		 GROUP BY o.scope_id, o.customer_id, e.event_id
		HAVING sum(o.sold) + sum(o.held) > e.max_per_customer`},

	{"scope", "hold, booking", `
		SELECT format('showtime_id=%s %s', o.showtime_id, o.id), 'scope_id ' || s.scope_id, 'scope_id ' || o.scope_id
		  FROM (SELECT showtime_id, 'hold_id=' || hold_id AS id, scope_id FROM hold
		         UNION ALL
		        SELECT showtime_id, 'booking_id=' || booking_id, scope_id FROM booking) o
		  JOIN showtime s USING (showtime_id)
		 WHERE o.scope_id <> s.scope_id`},
}
