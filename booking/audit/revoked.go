package audit

// sqlRevokedVisits is every visit with each order that names it.
const sqlRevokedVisits = `(
	SELECT v.session_id, x.revocation_id, x.created_at AS since, COALESCE(x.lifted_at, 'infinity') AS until
	  FROM session v JOIN revocation x ON (x.room_id IS NULL OR x.room_id = v.room_id)
	   AND CASE x.kind WHEN 'customer' THEN x.subject = v.customer_id WHEN 'place' THEN x.subject = v.place_id
	                   WHEN 'pass' THEN x.subject = v.jti ELSE COALESCE(v.granted_at, v.created_at) < x.granted_before END)`

// revokedInvariants: an order is obeyed within a second by takes and confirms, and
// within the time a process needs to end visits by everything else.
var revokedInvariants = []invariant{
	{"revoked-takes-nothing", "hold", `
		SELECT format('showtime_id=%s hold_id=%s', h.showtime_id, h.hold_id), 'none taken a second after revocation ' || r.revocation_id,
		       'taken ' || (h.created_at - r.since) || ' after'
		  FROM hold h JOIN ` + sqlRevokedVisits + ` r USING (session_id)
		 WHERE h.created_at > r.since + interval '1 second' AND h.created_at < r.until`},

	{"revoked-buys-nothing", "booking", `
		SELECT format('showtime_id=%s booking_id=%s', b.showtime_id, b.booking_id), 'none confirmed a second after revocation ' || r.revocation_id,
		       'confirmed ' || (b.confirmed_at - r.since) || ' after'
		  FROM booking b JOIN hold h USING (showtime_id, hold_id) JOIN ` + sqlRevokedVisits + ` r ON r.session_id = h.session_id
		 WHERE b.confirmed_at > r.since + interval '1 second' AND b.confirmed_at < r.until`},

	{"revoked-holds-nothing", "hold", `
		SELECT format('showtime_id=%s hold_id=%s', h.showtime_id, h.hold_id), 'released, a minute after revocation ' || r.revocation_id,
		       h.state || ' until ' || h.expires_at
		  FROM hold h CROSS JOIN moment JOIN ` + sqlRevokedVisits + ` r USING (session_id)
		 WHERE h.state IN ('OPEN', 'PAYING') AND h.expires_at > t AND r.since < t - interval '1 minute' AND r.until > t`},
}
