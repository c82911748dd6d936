-- What was changed by hand in a record, oldest first.
--
-- KEYS: its audit.
return redis.call('LRANGE', KEYS[1], 0, -1)
