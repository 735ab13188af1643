package audit

// moneyInvariants: money taken is money booked and money given back.
var moneyInvariants = []invariant{
	{"confirmed-hold-has-booking", "hold", `
		SELECT format('showtime_id=%s hold_id=%s', h.showtime_id, h.hold_id), 'one CONFIRMED or REFUNDED booking',
		       COALESCE('booking ' || b.booking_id || ' ' || b.state, 'none')
		  FROM hold h LEFT JOIN booking b USING (showtime_id, hold_id)
		 WHERE h.state = 'CONFIRMED' AND NOT COALESCE(b.state IN ('CONFIRMED', 'REFUNDED'), false)`},

	{"booking-has-hold", "booking", `
		SELECT format('showtime_id=%s booking_id=%s', b.showtime_id, b.booking_id),
		       'its CONFIRMED hold, with the same customer, seats, amount and currency',
		       COALESCE(format('hold %s customer=%s seats=%s %s %s', h.state, h.customer_id, h.seats, h.amount, h.currency), 'none')
		  FROM booking b LEFT JOIN hold h USING (showtime_id, hold_id)
		 WHERE b.state IN ('CONFIRMED', 'REFUNDED')
		   AND NOT COALESCE(h.state = 'CONFIRMED' AND h.customer_id = b.customer_id AND h.seats = b.seats
		                    AND h.amount = b.amount AND h.currency = b.currency, false)`},

	{"booking-has-tickets", "booking", `
		SELECT format('showtime_id=%s booking_id=%s', b.showtime_id, b.booking_id),
		       format('a ticket for each of %s, %s in all', b.seats, b.amount),
		       format('tickets for %s, %s in all', k.seats, k.amount)
		  FROM booking b CROSS JOIN LATERAL (
		       SELECT COALESCE(array_agg(seat_code ORDER BY seat_code), '{}') AS seats, COALESCE(sum(amount), 0) AS amount
		         FROM ticket k WHERE k.showtime_id = b.showtime_id AND k.booking_id = b.booking_id) k
		 WHERE CASE WHEN b.state IN ('CONFIRMED', 'REFUNDED')
		       THEN k.amount <> b.amount OR k.seats <> ARRAY(SELECT unnest(b.seats) ORDER BY 1)
		       ELSE k.seats <> '{}' END`},

	// Over all the attempts to pay one booking. What a PENDING or FAILED booking
	// was paid must be on its way back whole.
	{"money-balance", "booking", `
		SELECT format('showtime_id=%s booking_id=%s', b.showtime_id, b.booking_id),
		       format('%s: captured = refunds + %s', b.state, kept), format('captured %s, refunds %s', captured, refunds)
		  FROM booking b
		 CROSS JOIN LATERAL (SELECT CASE WHEN b.state IN ('CONFIRMED', 'REFUNDED') THEN b.amount - b.refunded_amount ELSE 0 END AS kept) n
		 CROSS JOIN LATERAL (SELECT COALESCE(sum(captured_amount), 0) AS captured FROM payment p
		                      WHERE p.showtime_id = b.showtime_id AND p.booking_id = b.booking_id) p
		 CROSS JOIN LATERAL (SELECT COALESCE(sum(amount), 0) AS refunds FROM refund r
		                      WHERE r.showtime_id = b.showtime_id AND r.booking_id = b.booking_id) r
		 WHERE captured <> refunds + kept`},

	{"refund-within-capture", "payment", `
		SELECT format('showtime_id=%s payment_id=%s', p.showtime_id, p.payment_id), 'refunds at most ' || p.captured_amount,
		       sum(r.amount)::text
		  FROM payment p JOIN refund r USING (showtime_id, payment_id)
		 GROUP BY p.showtime_id, p.payment_id HAVING sum(r.amount) > p.captured_amount`},

	{"refund-booking", "refund", `
		SELECT format('showtime_id=%s refund_id=%s', r.showtime_id, r.refund_id), 'the booking of its payment, ' || p.booking_id,
		       r.booking_id::text
		  FROM refund r JOIN payment p USING (showtime_id, payment_id)
		 WHERE r.booking_id <> p.booking_id`},

	{"payment-state", "payment", `
		SELECT format('showtime_id=%s payment_id=%s', p.showtime_id, p.payment_id),
		       CASE p.state WHEN 'CAPTURED' THEN 'CAPTURED: money, of a CONFIRMED booking'
		            WHEN 'REFUND_DUE' THEN 'REFUND_DUE: refunds of all that was captured, not all DONE'
		            WHEN 'REFUNDED' THEN 'REFUNDED: refunds of all that was captured, all DONE'
		            ELSE p.state || ': nothing captured, nothing refunded' END,
		       format('captured %s, refunds %s, of them due %s, booking %s', p.captured_amount, r.refunds, r.due, b.state)
		  FROM payment p
		  LEFT JOIN booking b USING (showtime_id, booking_id)
		 CROSS JOIN LATERAL (SELECT COALESCE(sum(amount), 0) AS refunds,
		                            COALESCE(sum(amount) FILTER (WHERE state = 'DUE'), 0) AS due
		                       FROM refund r WHERE r.showtime_id = p.showtime_id AND r.payment_id = p.payment_id) r
		 WHERE NOT COALESCE(CASE p.state
		       WHEN 'CAPTURED' THEN b.state = 'CONFIRMED' AND (p.captured_amount > 0 OR p.amount = 0)
		       WHEN 'REFUND_DUE' THEN r.refunds = p.captured_amount AND r.due > 0
		       WHEN 'REFUNDED' THEN r.refunds = p.captured_amount AND r.due = 0
		       ELSE p.captured_amount = 0 AND r.refunds = 0 END, false)`},

	{"one-captured", "booking", `
		SELECT format('showtime_id=%s booking_id=%s', b.showtime_id, b.booking_id),
		       CASE b.state WHEN 'CONFIRMED' THEN 'one CAPTURED payment' ELSE b.state || ': no CAPTURED payment' END,
		       count(p.payment_id)::text
		  FROM booking b LEFT JOIN payment p ON p.showtime_id = b.showtime_id AND p.booking_id = b.booking_id AND p.state = 'CAPTURED'
		 GROUP BY b.showtime_id, b.booking_id
		HAVING count(p.payment_id) <> CASE b.state WHEN 'CONFIRMED' THEN 1 ELSE 0 END`},

	{"payment-currency", "payment", `
		SELECT format('showtime_id=%s payment_id=%s', p.showtime_id, p.payment_id),
		       format('%s %s', b.amount, b.currency), format('%s %s', p.amount, p.currency)
		  FROM payment p JOIN booking b USING (showtime_id, booking_id)
		 WHERE p.currency <> b.currency OR p.amount <> b.amount`},
}
