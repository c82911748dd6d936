-- The ids of a bucket's open records, in their order: all have the same score.
--
-- KEYS: the open records of the bucket. ARGV: from where, how many.
return redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])
