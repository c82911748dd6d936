-- The end of an attempt in one trip: the transition of the same name. 1, or
-- nothing if the record is not this holder's to end.
--
-- KEYS: the record, the open records of its bucket, its steps.
-- ARGV: clock, id, claim, fence; the TTL, or nothing; for how many
-- milliseconds the server keeps it, or nothing; whether its version counts as
-- applied; the fields of the end that need no time, as names and values.

-- As bytes: Lua's own comparison depends on the locale.
local function is_less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

local seen = redis.call('HMGET', KEYS[1], 'state', 'claim', 'fence', 'v_running', 'v_applied')
local state, claim, fence, running, applied = unpack(seen)
if claim ~= ARGV[3] or fence ~= ARGV[4] or (state ~= '0' and state ~= '4') then
  return false
end
local time = now(ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[3])
redis.call('HDEL', KEYS[1], 'lease', 'expires', 'since', 'not_before', 'reason', 'codec', 'failed',
  'answer', 'digest', 'v_recorded', 'v_running', 'recorded_fp')
local expires = ARGV[5] ~= '' and plus(time, ARGV[5])
if expires then
  redis.call('HSET', KEYS[1], 'finished', time, 'expires', expires, unpack(ARGV, 8))
else
  redis.call('HSET', KEYS[1], 'finished', time, unpack(ARGV, 8))
end
if running then
  redis.call('HSET', KEYS[1], 'v_recorded', running)
  if ARGV[7] == '1' and (not applied or is_less(applied, running)) then
    applied = running
    redis.call('HSET', KEYS[1], 'v_applied', applied)
  end
end
-- The highest version applied is what makes a late message stale: it stays.
if ARGV[6] ~= '' and not applied then
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end
return 1
