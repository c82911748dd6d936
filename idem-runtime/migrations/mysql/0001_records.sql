-- One row says what all engines on this store must agree on.
CREATE TABLE IF NOT EXISTS {meta} (
  one tinyint NOT NULL PRIMARY KEY,
  format varchar(32) CHARACTER SET ascii NOT NULL,
  instance binary(16) NOT NULL,
  secret_check binary(32) NOT NULL
) ENGINE = InnoDB;

-- One row per key. Times are microseconds since the Unix epoch. The id is
-- binary and of one length: no collation, no trailing space, no cut makes two
-- keys one.
CREATE TABLE IF NOT EXISTS {records} (
  id binary(32) NOT NULL PRIMARY KEY,
  operation varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  label varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  scope_digest binary(32),
  payload_digest binary(32) NOT NULL,
  -- Label and 8-byte digest of each payload element.
  payload_elements mediumblob NOT NULL,
  -- 0 in progress, 1 released, 2 completed, 3 tombstone, 4 unknown.
  state smallint NOT NULL,
  fence bigint NOT NULL,
  attempt int NOT NULL,
  claim binary(16) NOT NULL,
  takeovers int NOT NULL,
  doubt boolean NOT NULL,
  lease_until_us bigint,
  started_us bigint NOT NULL,
  finished_us bigint,
  expires_us bigint,
  since_us bigint,
  not_before_us bigint,
  reason smallint,
  codec varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  failed boolean,
  answer longblob,
  answer_digest binary(32),
  version_applied varbinary(32),
  version_recorded varbinary(32),
  version_running varbinary(32),
  recorded_payload_digest binary(32),
  parent binary(32),
  -- For sweep. In-progress and unknown records have no expiry.
  KEY expiry (expires_us)
) ENGINE = InnoDB;
