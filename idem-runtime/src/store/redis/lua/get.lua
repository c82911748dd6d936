-- Returns an entry of a front. KEYS: the entry.
return redis.call('GET', KEYS[1])
