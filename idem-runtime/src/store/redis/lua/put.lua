-- Puts an entry of a front, unless one of a kind that stays stands there.
-- KEYS: the entry. ARGV: the new entry, its expiry in milliseconds, the kinds
-- that stay.
local kind = redis.call('GETRANGE', KEYS[1], 0, 0)
if kind ~= '' and string.find(ARGV[3], kind, 1, true) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
