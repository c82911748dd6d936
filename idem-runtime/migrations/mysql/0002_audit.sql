-- For operators: the few open records among the many finished ones. There are
-- no partial indexes, but open records have no expiry; with the state after it,
-- what is kept for ever is not in their way. It serves sweep as the index on the
-- expiry alone did, so there is one index still, and no statement that names a
-- state and an id can be led astray by it. Where this was done before, and the
-- rest was not, it is not done again.
SET @idem_change = IF(
  EXISTS (SELECT 1 FROM information_schema.statistics
    WHERE table_schema = {database} AND table_name = {records_name} AND index_name = 'open'),
  'DO 0',
  'ALTER TABLE {records} ADD KEY open (expires_us, state), DROP KEY expiry');
PREPARE idem_change FROM @idem_change;
EXECUTE idem_change;
DEALLOCATE PREPARE idem_change;

-- One row per change that was made by hand. Kept for ever.
CREATE TABLE IF NOT EXISTS {audit} (
  id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  record_id binary(32) NOT NULL,
  at_us bigint NOT NULL,
  -- The record's state and fence before.
  was smallint NOT NULL,
  fence bigint NOT NULL,
  -- 1 done, 2 not done, 3 forgotten.
  became smallint NOT NULL,
  forced boolean NOT NULL,
  who varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  why varchar(1024) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  KEY record (record_id)
) ENGINE = InnoDB;
