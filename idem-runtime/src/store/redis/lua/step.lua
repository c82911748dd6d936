-- Keeps a step of an attempt, if the record is still its own: 1 if it is now
-- kept, 0 if it was before, nothing if the record is not this holder's.
--
-- KEYS: the record, its steps. ARGV: claim, fence, the step's field, the step.
local seen = redis.call('HMGET', KEYS[1], 'state', 'claim', 'fence')
if seen[1] ~= '0' or seen[2] ~= ARGV[1] or seen[3] ~= ARGV[2] then
  return false
end
return redis.call('HSETNX', KEYS[2], ARGV[3], ARGV[4])
