-- A fresh record, or what stands there: the time of the reservation; the time
-- and the record; or nothing if it is finished and a glance went ahead of this.
--
-- KEYS: the record, the open records of its bucket, its steps.
-- ARGV: clock, id, lease, whether a glance went ahead; operation, digest of the
-- payload, its elements, claim; what else a fresh record has, as names and values.
if ARGV[4] == '1' then
  local state = redis.call('HGET', KEYS[1], 'state')
  if state == '2' or state == '3' then
    return false
  end
end
local time = now(ARGV[1])
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {time, redis.call('HGETALL', KEYS[1])}
end
-- Steps of a record that somebody deleted are of no life of this key.
redis.call('DEL', KEYS[3])
-- First what can fail: the key may be of another type.
redis.call('ZADD', KEYS[2], 0, ARGV[2])
redis.call('HSET', KEYS[1], 'state', '0', 'attempt', '1', 'takeovers', '0', 'doubt', '0',
  'fence', time, 'started', time, 'lease', lease_end(time, ARGV[3]), 'op', ARGV[5], 'fp', ARGV[6],
  'elements', ARGV[7], 'claim', ARGV[8], unpack(ARGV, 9))
return time
