-- One row per change that was made by hand. Kept for ever.
CREATE TABLE idem_audit (
  id INTEGER PRIMARY KEY,
  record_id BLOB NOT NULL CHECK (length(record_id) = 32),
  at_us INTEGER NOT NULL,
  -- The record's state and fence before.
  was INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  -- 1 done, 2 not done, 3 forgotten.
  became INTEGER NOT NULL,
  forced INTEGER NOT NULL,
  who TEXT NOT NULL,
  why TEXT NOT NULL
);
CREATE INDEX idem_audit_record ON idem_audit (record_id);

-- For operators: the few open records among the many finished ones.
CREATE INDEX idem_records_open ON idem_records (id) WHERE state IN (0, 4);
