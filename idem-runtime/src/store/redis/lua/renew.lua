-- A later end of a lease, if it is still this holder's.
--
-- KEYS: the record. ARGV: clock, claim, fence, lease.
local seen = redis.call('HMGET', KEYS[1], 'state', 'claim', 'fence')
if seen[1] ~= '0' or seen[2] ~= ARGV[2] or seen[3] ~= ARGV[3] then
  return 0
end
redis.call('HSET', KEYS[1], 'lease', lease_end(now(ARGV[1]), ARGV[4]))
return 1
