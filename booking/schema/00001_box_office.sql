-- +goose Up

-- What is on sale -----------------------------------------------------------

CREATE TABLE room (
    room_id         text PRIMARY KEY CHECK (room_id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    title           text NOT NULL,
    mode            text NOT NULL DEFAULT 'fifo' CHECK (mode IN ('fifo', 'draw', 'passthrough', 'reject')),
    state           text NOT NULL DEFAULT 'open'
                    CHECK (state IN ('scheduled', 'gathering', 'drawing', 'open', 'paused', 'closed')),
    rate_per_minute integer NOT NULL CHECK (rate_per_minute BETWEEN 0 AND 1000000), -- the operator's ceiling
    cap             integer NOT NULL CHECK (cap BETWEEN 0 AND 1000000),             -- most fans inside at once
    valve           text NOT NULL DEFAULT 'fixed' CHECK (valve IN ('fixed', 'adaptive')),
    opens_at        timestamptz,
    run             integer NOT NULL DEFAULT 1 CHECK (run > 0), -- raised by an operator's reset: older places end
    -- Raised by every change, never below the clock in microseconds: the bridge ships by it, and a database
    -- made anew must not stay behind what a Redis remembers of the one before.
    version         bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    updated_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE venue (
    venue_id  text PRIMARY KEY,
    name      text NOT NULL,
    city      text NOT NULL DEFAULT '',
    timezone  text NOT NULL -- IANA name
);

-- A layout is one version of a venue's seats; it never changes once written.
CREATE TABLE layout (
    layout_id  text PRIMARY KEY, -- venue_id || '@' || first 12 hex digits of the digest of its content
    venue_id   text NOT NULL REFERENCES venue,
    shape      jsonb NOT NULL    -- what a map draws besides seats: stage, section outlines, labels
);

CREATE TABLE layout_seat (
    layout_id   text NOT NULL REFERENCES layout,
    seat_code   text NOT NULL,
    section     text NOT NULL,
    row_label   text NOT NULL,
    seat_label  text NOT NULL,    -- what is printed: "5"; text, for B-2 and B-10 are labels, not numbers
    row_index   integer NOT NULL, -- physical row within the section, counted from the stage
    position    integer NOT NULL, -- physical position within the row; an aisle or gap skips a number
    x           real NOT NULL,
    y           real NOT NULL,
    accessible  boolean NOT NULL DEFAULT false,
    standing    boolean NOT NULL DEFAULT false,
    price_class text NOT NULL,
    PRIMARY KEY (layout_id, seat_code),
    UNIQUE (layout_id, section, row_index, position)
);

CREATE TABLE event (
    event_id           text PRIMARY KEY,
    venue_id           text NOT NULL REFERENCES venue,
    title              text NOT NULL,
    subtitle           text NOT NULL DEFAULT '',
    kind               text NOT NULL CHECK (kind IN ('cinema', 'stadium')),
    currency           text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    max_per_hold       integer NOT NULL CHECK (max_per_hold BETWEEN 1 AND 100),
    max_per_customer   integer CHECK (max_per_customer >= 1), -- NULL: no limit
    limit_scope        text NOT NULL DEFAULT 'showtime' CHECK (limit_scope IN ('showtime', 'event')),
    hold_seconds       integer NOT NULL DEFAULT 600 CHECK (hold_seconds BETWEEN 1 AND 86400),
    source_digest      text NOT NULL DEFAULT ''
);

CREATE TABLE price_class (
    event_id text NOT NULL REFERENCES event,
    code     text NOT NULL,
    name     text NOT NULL,
    amount   bigint NOT NULL CHECK (amount >= 0), -- minor units of the event's currency
    color    text NOT NULL DEFAULT '',
    PRIMARY KEY (event_id, code)
);

CREATE TABLE showtime (
    showtime_id text PRIMARY KEY CHECK (showtime_id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    event_id    text NOT NULL REFERENCES event,
    room_id     text NOT NULL REFERENCES room,
    layout_id   text NOT NULL REFERENCES layout,
    scope_id    text NOT NULL, -- where the limit counts: the showtime's id, or 'event:' || event_id
    starts_at   timestamptz NOT NULL
);
CREATE INDEX showtime_room ON showtime (room_id);

-- Seats: the truth ----------------------------------------------------------

-- Slim on purpose: no index but the key, so that a take is a heap-only update.
-- A hold's row names its seats, so nothing is ever searched by hold_id here.
CREATE TABLE show_seat (
    showtime_id     text NOT NULL REFERENCES showtime,
    seat_code       text NOT NULL,
    status          text NOT NULL DEFAULT 'AVAILABLE',
    hold_id         uuid,
    customer_id     text,
    hold_expires_at timestamptz,
    booking_id      uuid,
    PRIMARY KEY (showtime_id, seat_code),
    CONSTRAINT show_seat_state CHECK (
        (status = 'AVAILABLE' AND hold_id IS NULL AND customer_id IS NULL AND hold_expires_at IS NULL AND booking_id IS NULL) OR
        (status = 'HELD' AND hold_id IS NOT NULL AND customer_id IS NOT NULL AND hold_expires_at IS NOT NULL AND booking_id IS NULL) OR
        (status = 'BOOKED' AND hold_id IS NOT NULL AND customer_id IS NOT NULL AND hold_expires_at IS NULL AND booking_id IS NOT NULL))
) WITH (fillfactor = 60);

-- Who may buy ---------------------------------------------------------------

CREATE TABLE session (
    session_id   uuid PRIMARY KEY,
    jti          text NOT NULL UNIQUE, -- one pass, one session: this constraint decides
    room_id      text NOT NULL REFERENCES room,
    place_id     text NOT NULL,
    customer_id  text NOT NULL,
    binding_hash text NOT NULL DEFAULT '', -- the pass' cnf; '' for a pass without one
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    end_reason   text CHECK (end_reason IN ('left', 'confirmed', 'expired', 'revoked')),
    CHECK ((ended_at IS NULL) = (end_reason IS NULL))
);
-- What the bridge reads each second.
CREATE INDEX session_living ON session (room_id, expires_at) WHERE ended_at IS NULL;
CREATE INDEX session_ended ON session (ended_at) WHERE ended_at IS NOT NULL;

-- One row per customer and scope: the lock that makes the limit a conflict, and
-- the five takes a minute. The counts themselves are recounted, never stored.
CREATE TABLE customer_limit (
    scope_id     text NOT NULL,
    customer_id  text NOT NULL,
    window_start timestamptz NOT NULL DEFAULT clock_timestamp(),
    takes        integer NOT NULL DEFAULT 0 CHECK (takes >= 0),
    PRIMARY KEY (scope_id, customer_id)
);

-- Holds, bookings, money ----------------------------------------------------

CREATE TABLE hold (
    showtime_id     text NOT NULL, -- no reference: each hold would lock its showtime's one row; the seats have it
    hold_id         uuid NOT NULL,
    scope_id        text NOT NULL,
    customer_id     text NOT NULL,
    session_id      uuid NOT NULL,
    seats           text[] NOT NULL CHECK (cardinality(seats) > 0), -- sorted
    seat_count      integer NOT NULL CHECK (seat_count = cardinality(seats)),
    amount          bigint NOT NULL CHECK (amount >= 0),
    currency        text NOT NULL,
    state           text NOT NULL DEFAULT 'OPEN' CHECK (state IN ('OPEN', 'PAYING', 'CONFIRMED', 'RELEASED', 'EXPIRED')),
    expires_at      timestamptz NOT NULL,
    extended        boolean NOT NULL DEFAULT false, -- by the first checkout, once
    idempotency_key text,
    request_hash    text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (showtime_id, hold_id),
    UNIQUE (showtime_id, customer_id, idempotency_key)
);
CREATE INDEX hold_by_id ON hold (hold_id);
CREATE INDEX hold_by_customer ON hold (scope_id, customer_id) WHERE state IN ('OPEN', 'PAYING', 'CONFIRMED');
CREATE INDEX hold_by_session ON hold (session_id);
CREATE INDEX hold_due ON hold (expires_at) WHERE state IN ('OPEN', 'PAYING');

CREATE TABLE booking (
    showtime_id     text NOT NULL REFERENCES showtime,
    booking_id      uuid NOT NULL,
    hold_id         uuid NOT NULL,
    scope_id        text NOT NULL,
    customer_id     text NOT NULL,
    session_id      uuid NOT NULL,
    room_id         text NOT NULL,
    seats           text[] NOT NULL,
    seat_count      integer NOT NULL CHECK (seat_count = cardinality(seats)),
    amount          bigint NOT NULL CHECK (amount >= 0),
    refunded_amount bigint NOT NULL DEFAULT 0,
    currency        text NOT NULL,
    state           text NOT NULL DEFAULT 'PENDING' CHECK (state IN ('PENDING', 'CONFIRMED', 'REFUNDED', 'FAILED')),
    reason          text NOT NULL DEFAULT '', -- why FAILED or REFUNDED
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    confirmed_at    timestamptz,
    PRIMARY KEY (showtime_id, booking_id),
    UNIQUE (showtime_id, hold_id),
    CHECK (refunded_amount BETWEEN 0 AND amount),
    CHECK (state NOT IN ('CONFIRMED', 'REFUNDED') OR confirmed_at IS NOT NULL)
);
CREATE INDEX booking_by_id ON booking (booking_id);
CREATE INDEX booking_by_customer ON booking (scope_id, customer_id) WHERE state = 'CONFIRMED';
CREATE INDEX booking_by_session ON booking (session_id);
CREATE INDEX booking_pending ON booking (created_at) WHERE state = 'PENDING';

CREATE TABLE payment (
    showtime_id         text NOT NULL,
    payment_id          uuid NOT NULL,
    booking_id          uuid NOT NULL,
    attempt             integer NOT NULL CHECK (attempt >= 1),
    provider            text NOT NULL,
    provider_payment_id text,   -- NULL until the provider has answered
    payment_url         text NOT NULL DEFAULT '',
    amount              bigint NOT NULL CHECK (amount >= 0),
    currency            text NOT NULL,
    state               text NOT NULL DEFAULT 'PENDING'
                        CHECK (state IN ('PENDING', 'CAPTURED', 'FAILED', 'REFUND_DUE', 'REFUNDED')),
    captured_amount     bigint NOT NULL DEFAULT 0 CHECK (captured_amount >= 0),
    reason              text NOT NULL DEFAULT '',
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at          timestamptz NOT NULL,
    checked_at          timestamptz, -- when a reconciler last took it up: its claim on this row
    updated_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (showtime_id, payment_id),
    UNIQUE (showtime_id, booking_id, attempt),
    UNIQUE (provider, provider_payment_id),
    FOREIGN KEY (showtime_id, booking_id) REFERENCES booking
);
CREATE INDEX payment_by_id ON payment (payment_id);
CREATE INDEX payment_pending ON payment (created_at) WHERE state = 'PENDING';
-- At most one payment of a booking may have bought it.
CREATE UNIQUE INDEX payment_one_captured ON payment (showtime_id, booking_id) WHERE state = 'CAPTURED';

-- Every event a provider has delivered, by its own id: the second delivery is seen here.
CREATE TABLE provider_event (
    provider    text NOT NULL,
    event_id    text NOT NULL,
    payment_id  uuid,
    kind        text NOT NULL,
    body        text NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (provider, event_id)
);

CREATE TABLE refund (
    showtime_id        text NOT NULL,
    refund_id          uuid NOT NULL, -- also the provider's idempotency key
    payment_id         uuid NOT NULL,
    booking_id         uuid NOT NULL,
    amount             bigint NOT NULL CHECK (amount > 0),
    reason             text NOT NULL,
    state              text NOT NULL DEFAULT 'DUE' CHECK (state IN ('DUE', 'DONE')),
    provider_refund_id text,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at            timestamptz,
    PRIMARY KEY (showtime_id, refund_id),
    FOREIGN KEY (showtime_id, payment_id) REFERENCES payment,
    CHECK ((state = 'DONE') = (done_at IS NOT NULL))
);
CREATE INDEX refund_by_payment ON refund (showtime_id, payment_id);
CREATE INDEX refund_due ON refund (created_at) WHERE state = 'DUE';

CREATE TABLE ticket (
    showtime_id text NOT NULL,
    ticket_id   uuid NOT NULL,
    booking_id  uuid NOT NULL,
    seat_code   text NOT NULL,
    code        text NOT NULL, -- what the QR code says; unguessable
    price_class text NOT NULL,
    amount      bigint NOT NULL,
    state       text NOT NULL DEFAULT 'VALID' CHECK (state IN ('VALID', 'REFUNDED')),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (showtime_id, ticket_id),
    UNIQUE (showtime_id, code),
    FOREIGN KEY (showtime_id, booking_id) REFERENCES booking
);
CREATE INDEX ticket_by_booking ON ticket (showtime_id, booking_id);
-- One live ticket a seat: the last wall against a double sale.
CREATE UNIQUE INDEX ticket_one_live ON ticket (showtime_id, seat_code) WHERE state = 'VALID';

-- Books ---------------------------------------------------------------------

CREATE TABLE idempotency (
    customer_id  text NOT NULL,
    call         text NOT NULL, -- 'checkout'
    key          text NOT NULL,
    request_hash text NOT NULL,
    state        text NOT NULL DEFAULT 'RUNNING' CHECK (state IN ('RUNNING', 'DONE')),
    locked_until timestamptz NOT NULL, -- a crashed owner's key is free again after this
    response     jsonb,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (customer_id, call, key)
);

CREATE TABLE outbox (
    showtime_id text NOT NULL,
    event_id    uuid NOT NULL,
    booking_id  uuid NOT NULL,
    seq         integer NOT NULL, -- per booking, from 1: consumers order and dedupe by it
    type        text NOT NULL CHECK (type IN ('BookingConfirmed', 'BookingFailed', 'BookingRefunded')),
    payload     jsonb NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at     timestamptz,
    PRIMARY KEY (showtime_id, event_id),
    UNIQUE (showtime_id, booking_id, seq)
);
CREATE INDEX outbox_unsent ON outbox (created_at) WHERE sent_at IS NULL;

CREATE TABLE audit_log (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor    text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    detail   jsonb NOT NULL DEFAULT '{}'
);
