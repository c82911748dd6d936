-- What all engines agree on: the first one's.
--
-- KEYS: the meta record. ARGV: format, instance, check of the secret.
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'instance', ARGV[2], 'secret_check', ARGV[3])
end
return redis.call('HMGET', KEYS[1], 'format', 'instance', 'secret_check')
