-- What stands there: the time and the record.
--
-- KEYS: the record. ARGV: clock.
return {now(ARGV[1]), redis.call('HGETALL', KEYS[1])}
