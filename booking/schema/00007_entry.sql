-- +goose Up

-- When a ticket's holder came in, at whose scanner, and by which scan: one that is
-- repeated because its answer was lost is told the same again.
ALTER TABLE ticket
    ADD COLUMN entered_at timestamptz,
    ADD COLUMN entered_by text,
    ADD COLUMN entry_key  text;
