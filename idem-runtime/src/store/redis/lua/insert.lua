-- A fresh record, or what stands there.
--
-- KEYS: the record, the open records of its bucket, its steps.
-- ARGV: clock, id, lease, and the fields of a fresh record that need no
-- time, as names and values.
local time = now(ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {time, false, redis.call('HGETALL', KEYS[1])}
end
-- Steps of a record that somebody deleted are of no life of this key.
redis.call('DEL', KEYS[3])
-- First what can fail: the key may be of another type.
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('HSET', KEYS[1], 'fence', time, 'started', time,
  'lease', lease_end(time, ARGV[3]), unpack(ARGV, 4))
return {time, time, {}}
