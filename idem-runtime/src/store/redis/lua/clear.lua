-- Deletes an entry of a front if it is of a kind.
-- KEYS: the entry. ARGV: the kind.
if redis.call('GETRANGE', KEYS[1], 0, 0) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
