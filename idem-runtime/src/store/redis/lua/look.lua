-- Fields of several records of one bucket.
--
-- KEYS: the records. ARGV: clock, names of fields.
local records = {}
for i, key in ipairs(KEYS) do
  records[i] = redis.call('HMGET', key, unpack(ARGV, 2))
end
return {now(ARGV[1]), records}
