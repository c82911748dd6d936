-- What a body has finished, for the attempt that takes it over. A label is
-- binary: no collation and no trailing space makes two of them one.
CREATE TABLE IF NOT EXISTS {steps} (
  record_id binary(32) NOT NULL,
  label varbinary(128) NOT NULL,
  -- Of the attempt that finished it.
  fence bigint NOT NULL,
  -- How many steps had begun before it; none if it ran beside another one.
  position int,
  -- Digest of the payload and version that it belongs to.
  basis binary(32) NOT NULL,
  codec varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  answer longblob NOT NULL,
  answer_digest binary(32) NOT NULL,
  recorded_us bigint NOT NULL,
  PRIMARY KEY (record_id, label, fence),
  FOREIGN KEY (record_id) REFERENCES {records} (id) ON DELETE CASCADE
) ENGINE = InnoDB;
