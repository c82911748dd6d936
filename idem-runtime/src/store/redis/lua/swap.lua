-- Writes what was decided on a record, if it is still the one that was seen:
-- every other write changes one of these four.
--
-- KEYS: the record, the open records of its bucket, its audit, its steps.
-- ARGV: the state, fence, claim and lease that were seen; id; whether the new
-- record is open; for how many milliseconds the server keeps it, or nothing;
-- what to add to the audit, or nothing; its fields, as names and values.
local seen = redis.call('HMGET', KEYS[1], 'state', 'fence', 'claim', 'lease')
for i = 1, 4 do
  if (seen[i] or '') ~= ARGV[i] then
    return 0
  end
end
if ARGV[6] == '1' then
  redis.call('ZADD', KEYS[2], 0, ARGV[5])
else
  redis.call('ZREM', KEYS[2], ARGV[5])
  -- Steps end with the life of their key.
  redis.call('DEL', KEYS[4])
end
if ARGV[8] ~= '' then
  redis.call('RPUSH', KEYS[3], ARGV[8])
end
-- Fields that the new record lacks are gone, and so is an expiry.
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], unpack(ARGV, 9))
if ARGV[7] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
end
return 1
