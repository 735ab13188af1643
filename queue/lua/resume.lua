-- resume: end a recovery. Every pass of before has run out, and booking, read later
-- than that, has told of all visits; or this memory is the room's first.
-- KEYS  as in keys.go
-- ARGV  1 the incarnation that is meant  2 booking was read after (µs by this clock)
--       3 nothing was forgotten (1|0)  4 claim window (µs)
-- returns 1 ended | 0 not yet, or another incarnation is here by now
local st = redis.call('HMGET', k_state, 'inc', 'hold')
if st[1] ~= ARGV[1] or not st[2] then return 0 end
if ARGV[3] == '1' then
  redis.call('HDEL', k_state, 'lost')
elseif tonumber(ARGV[2]) < tonumber(st[2]) then
  return 0
end
redis.call('HDEL', k_state, 'hold')
-- Nobody could be admitted meanwhile: no invitation runs out for that.
redis.call('HSET', k_state, 'grace', f(math.max(num(k_state, 'grace'), clock() + tonumber(ARGV[4]))))
return 1
