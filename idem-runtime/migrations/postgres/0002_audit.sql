-- One row per change that was made by hand. Kept for ever.
CREATE TABLE {audit} (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  record_id bytea NOT NULL CHECK (length(record_id) = 32),
  at_us bigint NOT NULL,
  -- The record's state and fence before.
  was smallint NOT NULL,
  fence bigint NOT NULL,
  -- 1 done, 2 not done, 3 forgotten.
  became smallint NOT NULL,
  forced boolean NOT NULL,
  who text NOT NULL,
  why text NOT NULL
);
CREATE INDEX {audit_record} ON {audit} (record_id);

-- For operators: the few open records among the many finished ones. A renewal
-- stays a heap-only update.
CREATE INDEX {open} ON {records} (id) WHERE state IN (0, 4);
