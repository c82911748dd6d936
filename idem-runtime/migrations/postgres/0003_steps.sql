-- What a body has finished, for the attempt that takes it over.
CREATE TABLE {steps} (
  record_id bytea NOT NULL REFERENCES {records} (id) ON DELETE CASCADE,
  label text NOT NULL,
  -- Of the attempt that finished it.
  fence bigint NOT NULL,
  -- How many steps had begun before it; none if it ran beside another one.
  position integer,
  -- Digest of the payload and version that it belongs to.
  basis bytea NOT NULL CHECK (length(basis) = 32),
  codec text NOT NULL,
  answer bytea NOT NULL,
  answer_digest bytea NOT NULL,
  recorded_us bigint NOT NULL,
  PRIMARY KEY (record_id, label, fence)
);
