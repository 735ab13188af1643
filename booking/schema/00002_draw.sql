-- +goose Up

-- Gathering, and a drawing that anybody can check (queue/doc.go tells how it is drawn).

ALTER TABLE room
    ADD COLUMN gathers_at        timestamptz,
    ADD COLUMN timezone          text NOT NULL DEFAULT 'UTC', -- IANA name: the event's clock, for showing and reading times
    -- Secret until the drawing has begun, and published then. Every room has one from its first day, whatever its
    -- mode, so that no way into mode draw can forget it. Two random UUIDs hold 244 bits by the server's strong source.
    ADD COLUMN draw_seed         bytea NOT NULL DEFAULT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
                                 CHECK (octet_length(draw_seed) = 32),
    ADD COLUMN draw_public_value text NOT NULL DEFAULT '' CHECK (char_length(draw_public_value) <= 200),
    ADD COLUMN draw_digest       bytea CHECK (octet_length(draw_digest) = 32),
    ADD COLUMN draw_entries      integer CHECK (draw_entries >= 0),
    ADD COLUMN draw_cut          bigint CHECK (draw_cut >= 0), -- last score of the gathering; later ones come after all drawn
    ADD COLUMN drawn_at          timestamptz,
    ADD CONSTRAINT room_gathers_before_it_opens CHECK (gathers_at IS NULL OR opens_at IS NULL OR gathers_at < opens_at),
    ADD CONSTRAINT room_drawn CHECK (
        num_nulls(draw_digest, draw_entries, draw_cut, drawn_at) IN (0, 4));

-- A reset draws anew: its seed must be one that nobody has seen, and who raises the
-- run must not have to remember that.
-- +goose StatementBegin
CREATE FUNCTION room_draws_anew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.draw_seed := sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
    NEW.draw_public_value := '';
    NEW.draw_digest := NULL;
    NEW.draw_entries := NULL;
    NEW.draw_cut := NULL;
    NEW.drawn_at := NULL;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER room_draws_anew BEFORE UPDATE OF run ON room
    FOR EACH ROW WHEN (NEW.run <> OLD.run) EXECUTE FUNCTION room_draws_anew();

-- Who took part, in order of arrival, 16 bytes a place and 100,000 places a row:
-- what was drawn stays checkable when Redis was emptied.
CREATE TABLE draw_entries (
    room_id text NOT NULL REFERENCES room,
    run     integer NOT NULL,
    chunk   integer NOT NULL CHECK (chunk >= 0), -- counted from 0
    places  bytea NOT NULL CHECK (octet_length(places) % 16 = 0),
    PRIMARY KEY (room_id, run, chunk)
);
