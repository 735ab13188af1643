-- One of everything that happens at a box office, as its steps leave it, in a showtime
-- 'show' with the seats A1 to A6 and B1 to B6. The last digit of an id tells the story:
-- 1 bought, 2 bought and given back, 3 paid too late, 4 held, 5 expired, 6 being
-- paid, 7 bought and one ticket of two given back. The first digit tells the kind.

INSERT INTO session (session_id, jti, room_id, place_id, customer_id, created_at, expires_at, ended_at, end_reason)
SELECT format('50000000-0000-0000-0000-00000000000%s', n)::uuid, 'pass-' || n, 'room', 'place-' || n, 'fan-' || n,
       now() - interval '5 min', now() + interval '10 min', ended, CASE WHEN ended IS NOT NULL THEN 'confirmed' END
  FROM generate_series(1, 7) n,
       LATERAL (SELECT CASE WHEN n IN (1, 2, 7) THEN now() - interval '1 min' END AS ended) e;

INSERT INTO hold (showtime_id, hold_id, scope_id, customer_id, session_id, seats, seat_count, amount, currency, state, expires_at, extended)
SELECT 'show', format('10000000-0000-0000-0000-00000000000%s', n)::uuid, 'show', 'fan-' || n,
       format('50000000-0000-0000-0000-00000000000%s', n)::uuid, seats, cardinality(seats), 100 * cardinality(seats), 'EUR', state,
       now() + wait, state <> 'OPEN'
  FROM (VALUES (1, '{A1,A2}'::text[], 'CONFIRMED', interval '5 min'), (2, '{A3}', 'CONFIRMED', '5 min'),
               (3, '{A4}', 'EXPIRED', '-1 min'), (4, '{B1,B2}', 'OPEN', '10 min'), (5, '{B3}', 'OPEN', '-1 min'),
               (6, '{B4}', 'PAYING', '10 min'), (7, '{A5,A6}', 'CONFIRMED', '5 min')) v (n, seats, state, wait);

INSERT INTO booking (showtime_id, booking_id, hold_id, scope_id, customer_id, session_id, room_id, seats, seat_count,
                     amount, refunded_amount, currency, state, reason, confirmed_at)
SELECT 'show', format('20000000-0000-0000-0000-00000000000%s', n)::uuid, hold_id, 'show', customer_id, session_id, 'room', seats, seat_count,
       amount, refunded, 'EUR', v.state, '', CASE WHEN v.state IN ('CONFIRMED', 'REFUNDED') THEN now() END
  FROM (VALUES (1, 'CONFIRMED', 0), (2, 'REFUNDED', 100), (3, 'FAILED', 0), (6, 'PENDING', 0), (7, 'CONFIRMED', 100)) v (n, state, refunded)
  JOIN hold ON hold_id = format('10000000-0000-0000-0000-00000000000%s', n)::uuid;

INSERT INTO payment (showtime_id, payment_id, booking_id, attempt, provider, provider_payment_id, amount, currency, state, captured_amount, expires_at)
SELECT 'show', format('30000000-0000-0000-0000-00000000000%s', n)::uuid, booking_id, 1, 'sandbox', 'p' || n, amount, 'EUR', v.state, captured,
       now() + interval '8 min'
  FROM (VALUES (1, 'CAPTURED', 200), (2, 'REFUNDED', 100), (3, 'REFUND_DUE', 100), (6, 'PENDING', 0), (7, 'CAPTURED', 200)) v (n, state, captured)
  JOIN booking ON booking_id = format('20000000-0000-0000-0000-00000000000%s', n)::uuid;

-- A declined attempt before the one that paid.
INSERT INTO payment (showtime_id, payment_id, booking_id, attempt, provider, provider_payment_id, amount, currency, state, expires_at)
VALUES ('show', '30000000-0000-0000-0000-000000000011', '20000000-0000-0000-0000-000000000001', 2, 'sandbox', 'p11', 200, 'EUR', 'FAILED', now());

INSERT INTO refund (showtime_id, refund_id, payment_id, booking_id, amount, reason, state, done_at)
SELECT 'show', format('40000000-0000-0000-0000-00000000000%s', n)::uuid, payment_id, booking_id, 100, 'test', v.state,
       CASE WHEN v.state = 'DONE' THEN now() END
  FROM (VALUES (2, 'DONE'), (3, 'DUE'), (7, 'DUE')) v (n, state)
  JOIN payment ON payment_id = format('30000000-0000-0000-0000-00000000000%s', n)::uuid;

INSERT INTO ticket (showtime_id, ticket_id, booking_id, seat_code, code, price_class, amount, state)
SELECT 'show', format('60000000-0000-0000-0000-0000000000%s', seat)::uuid, format('20000000-0000-0000-0000-00000000000%s', n)::uuid,
       seat, 'code-' || seat, 'seat', 100, state
  FROM (VALUES (1, 'A1', 'VALID'), (1, 'A2', 'VALID'), (2, 'A3', 'REFUNDED'), (7, 'A5', 'VALID'), (7, 'A6', 'REFUNDED')) v (n, seat, state);

UPDATE show_seat s SET status = 'BOOKED', hold_id = b.hold_id, customer_id = b.customer_id, booking_id = b.booking_id
  FROM ticket k JOIN booking b USING (showtime_id, booking_id)
 WHERE k.state = 'VALID' AND s.showtime_id = k.showtime_id AND s.seat_code = k.seat_code;
UPDATE show_seat s SET status = 'HELD', hold_id = h.hold_id, customer_id = h.customer_id, hold_expires_at = h.expires_at
  FROM hold h WHERE h.state IN ('OPEN', 'PAYING') AND s.showtime_id = h.showtime_id AND s.seat_code = ANY (h.seats);

INSERT INTO outbox (showtime_id, event_id, booking_id, seq, type, payload)
SELECT 'show', gen_random_uuid(), format('20000000-0000-0000-0000-00000000000%s', n)::uuid, seq, type, '{}'
  FROM (VALUES (1, 1, 'BookingConfirmed'), (2, 1, 'BookingConfirmed'), (2, 2, 'BookingRefunded'), (3, 1, 'BookingFailed'),
               (7, 1, 'BookingConfirmed'), (7, 2, 'BookingRefunded')) v (n, seq, type);

INSERT INTO idempotency (customer_id, call, key, request_hash, state, locked_until, response)
VALUES ('fan-1', 'checkout', 'k1', '', 'DONE', now(), '{"bookingId": "20000000-0000-0000-0000-000000000001"}'),
       ('fan-6', 'checkout', 'k6', '', 'RUNNING', now() + interval '1 min', NULL);

-- Fan 3 was revoked just now; fan 4 an hour ago, and that was lifted before they came.
INSERT INTO revocation (revocation_id, room_id, kind, subject, actor, reason, created_at, lifted_at, lifted_by)
VALUES ('70000000-0000-0000-0000-000000000003', 'room', 'customer', 'fan-3', 'olga', 'test', clock_timestamp(), NULL, NULL),
       ('70000000-0000-0000-0000-000000000004', 'room', 'customer', 'fan-4', 'olga', 'test', now() - interval '1 hour', now() - interval '30 min', 'otto');
