-- What a body has finished, for the attempt that takes it over.
CREATE TABLE idem_steps (
  record_id BLOB NOT NULL CHECK (length(record_id) = 32),
  label TEXT NOT NULL,
  -- Of the attempt that finished it.
  fence INTEGER NOT NULL,
  -- How many steps had begun before it; none if it ran beside another one.
  position INTEGER,
  -- Digest of the payload and version that it belongs to.
  basis BLOB NOT NULL CHECK (length(basis) = 32),
  codec TEXT NOT NULL,
  answer BLOB NOT NULL,
  answer_digest BLOB NOT NULL,
  recorded_us INTEGER NOT NULL,
  PRIMARY KEY (record_id, label, fence)
);

-- Steps end with the life of their key, whoever ends it: those of a finished or
-- released record would be replayed in its next life. Not by a foreign key: a
-- record is written by a replacement, which would count as its deletion.
CREATE TRIGGER idem_steps_end AFTER INSERT ON idem_records WHEN NEW.state IN (1, 2, 3)
BEGIN
  DELETE FROM idem_steps WHERE record_id = NEW.id;
END;
