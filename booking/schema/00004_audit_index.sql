-- +goose Up

-- What is asked of the audit log by subject, by the bridge at each loss of the line's
-- memory and by operators at each list of invites: without it both read all of it.
CREATE INDEX audit_log_of ON audit_log (subject, action, audit_id);
