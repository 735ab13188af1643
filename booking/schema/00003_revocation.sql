-- +goose Up

-- Who may not buy. One row a subject; a call of the operator's writes all of its rows
-- under one revocation_id. A row counts from its commit until it is lifted.
CREATE TABLE revocation (
    revocation_id uuid NOT NULL,
    room_id       text REFERENCES room, -- NULL: in every room
    kind          text NOT NULL CHECK (kind IN ('customer', 'place', 'pass', 'everybody')),
    subject       text NOT NULL,        -- customer id, place id (32 hex digits) or pass id; '' for everybody
    granted_before timestamptz,         -- everybody whose pass was granted before this instant; NULL for the others
    actor         text NOT NULL,
    reason        text NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    lifted_at     timestamptz,
    lifted_by     text,
    PRIMARY KEY (revocation_id, kind, subject),
    CHECK ((kind = 'everybody') = (subject = '')),
    CHECK ((kind = 'everybody') = (granted_before IS NOT NULL)),
    CHECK ((lifted_at IS NULL) = (lifted_by IS NULL))
);
-- What every take and confirm asks: one probe for all that a visit can be revoked by.
CREATE INDEX revocation_target ON revocation ((kind || ':' || subject)) WHERE lifted_at IS NULL;
CREATE INDEX revocation_by_room ON revocation (room_id, created_at);

-- Raised, never below the clock in microseconds, by each revocation and each lifting:
-- what booking polls and the bridge ships by.
ALTER TABLE room ADD COLUMN revocation_version bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- When the line admitted the fan (iat of the pass, whole seconds); NULL for a session
-- from before this column: its created_at stands in.
ALTER TABLE session ADD COLUMN granted_at timestamptz;
