-- +goose Up

-- How many percent of a room's calls go to its priority line while somebody waits in
-- both lines; 0: it is served only when nobody else waits.
ALTER TABLE room ADD COLUMN priority_share integer NOT NULL DEFAULT 30 CHECK (priority_share BETWEEN 0 AND 100);
