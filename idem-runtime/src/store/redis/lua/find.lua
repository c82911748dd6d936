-- What stands there.
--
-- KEYS: the record. ARGV: clock.
return {now(ARGV[1]), false, redis.call('HGETALL', KEYS[1])}
