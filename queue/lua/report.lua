-- report: stamp what Postgres knows with this store's clock. Without a fresh stamp
-- nobody is called or admitted.
-- KEYS  as in keys.go
-- ARGV  1 sequence  2 available  3 total  4 lanes (text)  5 report TTL (µs)  6 claim window (µs)
--       7 sold out (1|0)
-- returns 1
local now = clock()
local before = num(k_state, 'report')
if before > 0 and now - before > tonumber(ARGV[5]) then
  -- Nobody could be admitted meanwhile: no invitation runs out for that.
  redis.call('HSET', k_state, 'grace', f(now + tonumber(ARGV[6])))
end
redis.call('HSET', k_state, 'report', f(now), 'rseq', ARGV[1], 'available', ARGV[2], 'total', ARGV[3], 'lanes', ARGV[4],
  'soldout', ARGV[7])
return 1
