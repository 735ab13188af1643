-- One step of a lane, second statement. The first (sqlLockLimits) has locked the
-- customers' limit rows, so this one's snapshot is younger than every hold those
-- customers made elsewhere: what it counts is true until COMMIT. Counting in the
-- statement that waits for the lock would use the snapshot from before the wait.
--
-- The requests of one step share no seat, no (customer, scope) and no key.
--
-- $1..$12: one element a request. $13..$15: one element a wanted seat, ordered by
-- showtime and seat. $16 takes a minute, $17 longest session and $18 margin in
-- seconds.
-- On the first day of a sale the tables are empty, every index costs the same and
-- the planner may pick any. `|| ''` and `IS TRUE` take the wrong ones away from it:
-- those that begin with the showtime would read all of its holds.
--
-- Returns a row a request: its number from 1 and its outcome
--   take     the seats are this hold's now
--   same     this customer already holds exactly these seats; nothing changed
--   replay   the key has made a hold before (the hold is returned)
--   reused   the key has made a hold for another request
--   revoked  the operator has revoked the fan (SQLRevokedVisit's words)
--   session  the session has ended
--   gone     the showtime no longer has the seats in `lost`
--   taken    seats in `lost` are others' or sold, those in `yours` this customer holds
--   limit    the customer's limit does not allow it (held, sold)
--   rate     too many takes this minute (retry_ms)
--   locked   a stranger's transaction has a seat's row or is ending the session:
--            nobody can say yet
WITH clock AS MATERIALIZED (
    -- One instant for the whole step, read after the wait for the limit rows.
    -- Nobody is revoked on most days: then no request is asked about it.
    SELECT clock_timestamp() AS t, EXISTS (SELECT FROM revocation WHERE lifted_at IS NULL) AS revoking
), req AS MATERIALIZED (
    SELECT ord::int AS idx, hold_id::uuid AS hold_id, showtime_id, scope_id, customer_id, session_id::uuid AS session_id,
           seat_count, amount, currency, hold_seconds, max_customer, NULLIF(key, '') AS key, hash, v.here
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::bigint[], $8::text[],
                  $9::int[], $10::int[], $11::text[], $12::text[]) WITH ORDINALITY
           AS r(hold_id, showtime_id, scope_id, customer_id, session_id, seat_count, amount, currency,
                hold_seconds, max_customer, key, hash, ord)
      -- Until COMMIT nobody ends the session under its new hold, and one that is
      -- being ended is not waited for: who ends it may wait for our limit row.
      LEFT JOIN LATERAL (SELECT true AS here FROM session
                          WHERE session_id = r.session_id::uuid AND ended_at IS NULL
                            FOR SHARE SKIP LOCKED) v ON true
), want AS MATERIALIZED (
    SELECT * FROM unnest($13::int[], $14::text[], $15::text[]) AS w(idx, showtime_id, seat_code)
     ORDER BY showtime_id, seat_code
), seat AS MATERIALIZED (
    -- LATERAL keeps the plan at one index probe a seat, in key order. A row that
    -- another transaction has locked is simply not returned.
    SELECT w.idx, w.seat_code, s.status, s.hold_id AS hold, s.customer_id AS holder,
           s.status = 'AVAILABLE' OR (s.status = 'HELD' AND s.hold_expires_at <= clock.t) AS free
      FROM want w CROSS JOIN clock CROSS JOIN LATERAL (
           SELECT status, hold_id, customer_id, hold_expires_at FROM show_seat
            WHERE showtime_id = w.showtime_id AND seat_code = w.seat_code
              FOR UPDATE SKIP LOCKED) s
), seen AS MATERIALIZED (
    -- The request's columns are carried along, here and below: a join of two lists
    -- of this step is planned as a nested loop, 16,000 comparisons for 128 requests.
    SELECT r.*, count(s.seat_code) AS seen,
           array_agg(s.seat_code ORDER BY s.seat_code)
             FILTER (WHERE NOT s.free AND (s.status = 'HELD' AND s.holder = r.customer_id) IS NOT TRUE) AS lost,
           array_agg(s.seat_code ORDER BY s.seat_code)
             FILTER (WHERE NOT s.free AND s.status = 'HELD' AND s.holder = r.customer_id) AS yours,
           min(s.hold::text) FILTER (WHERE NOT s.free AND s.status = 'HELD' AND s.holder = r.customer_id) AS your_hold,
           min(s.hold::text) FILTER (WHERE NOT s.free) AS first_hold,
           max(s.hold::text) FILTER (WHERE NOT s.free) AS last_hold
      FROM req r LEFT JOIN seat s USING (idx)
     GROUP BY r.idx, r.hold_id, r.showtime_id, r.scope_id, r.customer_id, r.session_id, r.seat_count, r.amount,
              r.currency, r.hold_seconds, r.max_customer, r.key, r.hash, r.here
), judged AS MATERIALIZED (
    SELECT r.*, clock.t, old.hold_id AS old_hold, old.request_hash AS old_hash,
           -- Not returned is a seat that is locked, and one that is not there.
           CASE WHEN r.seen < r.seat_count THEN
             (SELECT array_agg(w.seat_code ORDER BY w.seat_code) FROM want w
               WHERE w.idx = r.idx AND NOT EXISTS (SELECT FROM show_seat q
                     WHERE q.showtime_id = w.showtime_id AND q.seat_code = w.seat_code)) END AS missing,
           CASE WHEN clock.revoking THEN EXISTS (
             SELECT FROM session v JOIN revocation x
                 ON (x.kind || ':' || x.subject) = ANY (ARRAY['everybody:', 'customer:' || v.customer_id, 'place:' || v.place_id, 'pass:' || v.jti])
              WHERE v.session_id = r.session_id AND x.lifted_at IS NULL
                AND (x.room_id IS NULL OR x.room_id = v.room_id)
                AND (x.kind <> 'everybody' OR COALESCE(v.granted_at, v.created_at) < x.granted_before)) ELSE false END AS revoked,
           own.hold_id AS own_hold, lim.window_start, lim.takes, l.held, l.sold,
           EXISTS (SELECT FROM session v WHERE v.session_id = r.session_id AND v.ended_at IS NULL
                      AND v.created_at + make_interval(secs => $17::int) > clock.t
                      AND (v.expires_at > clock.t OR (
                           SELECT bool_or(h.expires_at + make_interval(secs => $18::int) > clock.t) FROM hold h
                            WHERE h.session_id = v.session_id AND (h.state IN ('OPEN', 'PAYING')) IS TRUE))) AS visiting
      FROM seen r CROSS JOIN clock
      JOIN LATERAL (SELECT window_start, takes FROM customer_limit
                     WHERE scope_id = r.scope_id AND customer_id = r.customer_id) lim ON true
      LEFT JOIN LATERAL (SELECT hold_id, request_hash FROM hold h
                          WHERE h.showtime_id = r.showtime_id AND h.customer_id = r.customer_id
                            AND h.idempotency_key = r.key LIMIT 1) old ON true
      LEFT JOIN LATERAL (SELECT hold_id FROM hold h
                          WHERE cardinality(r.yours) = r.seat_count AND r.first_hold = r.last_hold
                            AND h.showtime_id || '' = r.showtime_id AND h.hold_id = r.first_hold::uuid
                            AND h.seat_count = r.seat_count LIMIT 1) own ON true
      CROSS JOIN LATERAL (SELECT
           CASE WHEN r.max_customer > 0 THEN
             (SELECT COALESCE(sum(h.seat_count), 0) FROM hold h
               WHERE h.scope_id = r.scope_id AND h.customer_id = r.customer_id
                 AND h.state IN ('OPEN', 'PAYING') AND (h.expires_at > clock.t) IS TRUE) ELSE 0 END AS held,
           CASE WHEN r.max_customer > 0 THEN
             (SELECT count(*) FROM booking b JOIN ticket k ON k.showtime_id = b.showtime_id AND k.booking_id = b.booking_id
               WHERE b.scope_id = r.scope_id AND b.customer_id = r.customer_id
                 AND b.state = 'CONFIRMED' AND (k.state = 'VALID') IS TRUE) ELSE 0 END AS sold) l
), decided AS MATERIALIZED (
    SELECT *, CASE
           WHEN revoked THEN 'revoked'
           WHEN NOT visiting THEN 'session'
           WHEN old_hold IS NOT NULL AND old_hash <> hash THEN 'reused'
           WHEN old_hold IS NOT NULL THEN 'replay'
           WHEN own_hold IS NOT NULL THEN 'same'
           WHEN missing IS NOT NULL THEN 'gone'
           WHEN lost IS NOT NULL OR yours IS NOT NULL THEN 'taken'
           WHEN max_customer > 0 AND held + sold + seat_count > max_customer THEN 'limit'
           WHEN $16::int > 0 AND takes >= $16 AND window_start > t - interval '1 minute' THEN 'rate'
           WHEN seen < seat_count OR here IS NULL THEN 'locked'
           ELSE 'take' END AS outcome
      FROM judged
), took AS (
    -- By key alone: the rows are locked and judged by their latest version, while a
    -- condition on the status here would be tried on the snapshot's version first
    -- and miss a seat that was released since.
    UPDATE show_seat s
       SET status = 'HELD', hold_id = d.hold_id, customer_id = d.customer_id, booking_id = NULL,
           hold_expires_at = d.t + make_interval(secs => d.hold_seconds)
      FROM decided d JOIN want w USING (idx)
     WHERE d.outcome = 'take' AND s.showtime_id = w.showtime_id AND s.seat_code = w.seat_code
    RETURNING d.*, s.seat_code
), held AS (
    -- The row's seats are those the update really took, and its CHECK compares
    -- them with the number asked: a partial take cannot be committed.
    INSERT INTO hold (showtime_id, hold_id, scope_id, customer_id, session_id, seats, seat_count,
                      amount, currency, expires_at, idempotency_key, request_hash, created_at)
    SELECT showtime_id, hold_id, scope_id, customer_id, session_id, array_agg(seat_code ORDER BY seat_code), seat_count,
           amount, currency, t + make_interval(secs => hold_seconds), key, hash, t
      FROM took
     GROUP BY idx, showtime_id, hold_id, scope_id, customer_id, session_id, seat_count, amount, currency, t, hold_seconds, key, hash
), counted AS (
    UPDATE customer_limit c
       SET takes = CASE WHEN c.window_start > d.t - interval '1 minute' THEN c.takes + 1 ELSE 1 END,
           window_start = CASE WHEN c.window_start > d.t - interval '1 minute' THEN c.window_start ELSE d.t END
      FROM decided d
     WHERE d.outcome = 'take' AND c.scope_id = d.scope_id AND c.customer_id = d.customer_id
)
SELECT d.idx, d.outcome, COALESCE(CASE d.outcome WHEN 'gone' THEN d.missing ELSE d.lost END, '{}'), d.held::int, d.sold::int,
       GREATEST(0, ceil(extract(epoch FROM d.window_start + interval '1 minute' - d.t) * 1000))::bigint AS retry_ms,
       COALESCE(h.hold_id, d.hold_id)::text, COALESCE(h.session_id, d.session_id)::text, h.seats,
       COALESCE(h.amount, d.amount), COALESCE(h.currency, d.currency),
       CASE WHEN h.state IS NULL THEN 'OPEN'
            WHEN h.state IN ('OPEN', 'PAYING') AND h.expires_at <= d.t THEN 'EXPIRED' ELSE h.state END,
       COALESCE(h.expires_at, d.t + make_interval(secs => d.hold_seconds)), d.hold_seconds,
       COALESCE(d.yours, '{}'), COALESCE(d.your_hold, '')
  FROM decided d
  LEFT JOIN LATERAL (SELECT * FROM hold h
                      WHERE h.showtime_id || '' = d.showtime_id
                        AND h.hold_id = CASE d.outcome WHEN 'replay' THEN d.old_hold WHEN 'same' THEN d.own_hold END) h ON true
 -- Undoes the step, by an error, should a take have taken no seat at all.
 WHERE 1 / ((SELECT count(DISTINCT idx) FROM took) = (SELECT count(*) FROM decided WHERE outcome = 'take'))::int = 1
