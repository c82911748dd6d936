-- What stands there.
--
-- KEYS: the record. ARGV: clock, floor.
return {now(ARGV[1], ARGV[2]), false, redis.call('HGETALL', KEYS[1])}
