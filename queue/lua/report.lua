-- report: stamp what Postgres knows with this store's clock. Without a fresh stamp
-- nobody is called or admitted, so only news may renew it.
-- KEYS  as in keys.go
-- ARGV  1 sequence; 0: unnumbered, taken as it comes  2 available  3 total  4 lanes (text)
--       5 report TTL (µs)  6 claim window (µs)  7 sold out (1|0)  8 database time of the reading (µs)
-- returns 1 taken | 0 not newer than the last one | -1 late: it was read longer ago than a report lives
local now, seq, ttl = clock(), tonumber(ARGV[1]), tonumber(ARGV[5])
local st = redis.call('HMGET', k_state, 'report', 'rseq', 'rlag', 'cseq', 'clag', 'vrate')
local before, last, least = tonumber(st[1]) or 0, tonumber(st[2]) or 0, tonumber(st[3])
local silent = before > 0 and now - before > ttl

if seq > 0 then
  -- Two clocks are never compared, but the distance between them stays: what grows
  -- beyond the least seen is delay. The least follows clocks that drift (1 %).
  local lag, taken = now - tonumber(ARGV[8]), 1
  if before > 0 and last > 0 and seq <= last then
    taken = 0
  elseif least and lag - least > ttl then
    taken = -1
  end
  if taken < 1 and silent and st[4] and seq > tonumber(st[4]) and math.abs(lag - tonumber(st[5])) <= ttl then
    -- Nothing was taken for as long as a report lives, and what comes goes on as time does:
    -- the database's clock was set back, or it is another database.
    taken, least = 1, lag
  end
  if taken < 1 then
    redis.call('HSET', k_state, 'cseq', ARGV[1], 'clag', f(lag), 'refused', f(now))
    return taken
  end
  least = math.min(lag, (least or lag) + math.max(now - before, 0) * 0.01)
  redis.call('HSET', k_state, 'rseq', ARGV[1], 'rat', ARGV[8], 'rlag', f(least))
end
if silent then
  -- Nobody could be admitted meanwhile: no invitation runs out for that. And an
  -- adaptive room is closed until the valve has begun anew.
  redis.call('HSET', k_state, 'grace', f(now + tonumber(ARGV[6])))
  if st[6] then redis.call('HSET', k_state, 'vrate', '0') end
end
redis.call('HSET', k_state, 'report', f(now), 'available', ARGV[2], 'total', ARGV[3], 'lanes', ARGV[4], 'soldout', ARGV[7])
return 1
