-- +goose Up

-- Until when a relay has the event to itself; NULL: nobody has. A relay that died
-- leaves its events to the others when the time is over.
ALTER TABLE outbox ADD COLUMN leased_until timestamptz;
