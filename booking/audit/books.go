package audit

// bookInvariants: what was promised to be told or remembered, was.
var bookInvariants = []invariant{
	{"idempotency-points-at-booking", "idempotency", `
		SELECT format('customer_id=%s call=%s key=%s', i.customer_id, i.call, i.key), 'DONE with an existing booking of the customer',
		       COALESCE('booking ' || (i.response ->> 'bookingId'), 'no booking')
		  FROM idempotency i
		 WHERE i.state = 'DONE' AND i.call = 'checkout'
		   AND NOT EXISTS (SELECT FROM booking b
		                    WHERE b.booking_id::text = i.response ->> 'bookingId' AND b.customer_id = i.customer_id)`},

	{"outbox-confirmed-once", "outbox", `
		SELECT format('showtime_id=%s booking_id=%s', b.showtime_id, b.booking_id),
		       CASE WHEN b.state IN ('CONFIRMED', 'REFUNDED') THEN 'one BookingConfirmed' ELSE b.state || ': no BookingConfirmed' END,
		       count(o.event_id)::text
		  FROM booking b LEFT JOIN outbox o ON o.showtime_id = b.showtime_id AND o.booking_id = b.booking_id AND o.type = 'BookingConfirmed'
		 GROUP BY b.showtime_id, b.booking_id
		HAVING count(o.event_id) <> CASE WHEN b.state IN ('CONFIRMED', 'REFUNDED') THEN 1 ELSE 0 END`},

	{"outbox-sequence", "outbox", `
		SELECT format('showtime_id=%s booking_id=%s', showtime_id, booking_id), 'seq from 1 without a gap',
		       string_agg(seq::text, ', ' ORDER BY seq)
		  FROM outbox GROUP BY showtime_id, booking_id
		HAVING min(seq) <> 1 OR max(seq) <> count(*) OR count(DISTINCT seq) <> count(*)`},

	{"outbox-has-booking", "outbox", `
		SELECT format('showtime_id=%s event_id=%s', o.showtime_id, o.event_id), 'a booking ' || o.booking_id, 'none'
		  FROM outbox o
		 WHERE NOT EXISTS (SELECT FROM booking b WHERE b.showtime_id = o.showtime_id AND b.booking_id = o.booking_id)`},

	{"one-session-per-pass", "session", `
		SELECT 'jti=' || jti, 'one session', string_agg(session_id::text, ', ' ORDER BY session_id)
		  FROM session GROUP BY jti HAVING count(*) > 1`},

	{"session-ended", "session", `
		SELECT 'session_id=' || v.session_id, 'ended with a reason, after it began and not in the future, or not ended',
		       format('began %s, ended %s, reason %s', v.created_at, v.ended_at, v.end_reason)
		  FROM session v CROSS JOIN moment
		 WHERE (v.ended_at IS NULL) <> (v.end_reason IS NULL) OR v.ended_at > t OR v.ended_at < v.created_at`},

	// A visit goes on only for another hold that was made in it.
	{"buyer-has-left", "session", `
		SELECT 'session_id=' || v.session_id, 'not living: its booking is confirmed and it has no other hold', 'living until ' || v.expires_at
		  FROM session v CROSS JOIN moment
		 WHERE v.ended_at IS NULL AND v.expires_at > t
		   AND EXISTS (SELECT FROM booking b WHERE b.session_id = v.session_id AND b.state IN ('CONFIRMED', 'REFUNDED'))
		   AND NOT EXISTS (SELECT FROM hold h WHERE h.session_id = v.session_id AND h.state <> 'CONFIRMED')`},
}
