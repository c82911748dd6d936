-- One row says what all engines on this store must agree on.
CREATE TABLE idem_meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  format TEXT NOT NULL,
  instance BLOB NOT NULL CHECK (length(instance) = 16),
  secret_check BLOB NOT NULL CHECK (length(secret_check) = 32),
  -- The latest time given out, behind by at most a second: the host's clock may
  -- step back, the store's time may not.
  clock_us INTEGER NOT NULL
);

-- One row per key. Times are microseconds since the Unix epoch.
CREATE TABLE idem_records (
  id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 32),
  operation TEXT NOT NULL,
  label TEXT,
  scope_digest BLOB,
  payload_digest BLOB NOT NULL CHECK (length(payload_digest) = 32),
  -- Label and 8-byte digest of each payload element.
  payload_elements BLOB NOT NULL,
  -- 0 in progress, 1 released, 2 completed, 3 tombstone, 4 unknown.
  state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),
  fence INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  claim BLOB NOT NULL CHECK (length(claim) = 16),
  takeovers INTEGER NOT NULL,
  doubt INTEGER NOT NULL,
  lease_until_us INTEGER,
  started_us INTEGER NOT NULL,
  finished_us INTEGER,
  expires_us INTEGER,
  since_us INTEGER,
  not_before_us INTEGER,
  reason INTEGER,
  codec TEXT,
  failed INTEGER,
  answer BLOB,
  answer_digest BLOB,
  version_applied BLOB,
  version_recorded BLOB,
  version_running BLOB,
  recorded_payload_digest BLOB,
  parent BLOB
);

-- For sweep. In-progress and unknown records have no expiry and are not in it.
CREATE INDEX idem_records_expiry ON idem_records (expires_us) WHERE expires_us IS NOT NULL;
