-- The steps that this life of the key has kept, or nothing if the record is not
-- this holder's.
--
-- KEYS: the record, its steps. ARGV: claim, fence.
local seen = redis.call('HMGET', KEYS[1], 'state', 'claim', 'fence')
if seen[1] ~= '0' or seen[2] ~= ARGV[1] or seen[3] ~= ARGV[2] then
  return false
end
return redis.call('HVALS', KEYS[2])
