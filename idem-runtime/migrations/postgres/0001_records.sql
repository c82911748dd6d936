-- One row says what all engines on this store must agree on.
CREATE TABLE {meta} (
  one smallint PRIMARY KEY CHECK (one = 1),
  format text NOT NULL,
  instance bytea NOT NULL CHECK (length(instance) = 16),
  secret_check bytea NOT NULL CHECK (length(secret_check) = 32)
);

-- One row per key. Times are microseconds since the Unix epoch. The primary key
-- is the only unique index: a reservation must not fail on another one.
CREATE TABLE {records} (
  id bytea NOT NULL PRIMARY KEY CHECK (length(id) = 32),
  operation text NOT NULL,
  label text,
  scope_digest bytea,
  payload_digest bytea NOT NULL CHECK (length(payload_digest) = 32),
  -- Label and 8-byte digest of each payload element.
  payload_elements bytea NOT NULL,
  -- 0 in progress, 1 released, 2 completed, 3 tombstone, 4 unknown.
  state smallint NOT NULL CHECK (state BETWEEN 0 AND 4),
  fence bigint NOT NULL,
  attempt integer NOT NULL,
  claim bytea NOT NULL CHECK (length(claim) = 16),
  takeovers integer NOT NULL,
  doubt boolean NOT NULL,
  -- Not indexed: a renewal stays a heap-only update.
  lease_until_us bigint,
  started_us bigint NOT NULL,
  finished_us bigint,
  expires_us bigint,
  since_us bigint,
  not_before_us bigint,
  reason smallint,
  codec text,
  failed boolean,
  answer bytea,
  answer_digest bytea,
  version_applied bytea,
  version_recorded bytea,
  version_running bytea,
  recorded_payload_digest bytea,
  parent bytea
);

-- For sweep. In-progress and unknown records have no expiry and are not in it.
CREATE INDEX {expiry} ON {records} (expires_us) WHERE expires_us IS NOT NULL;
