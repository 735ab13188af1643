-- leave: give a place in line up. A slot is not given back here: whether a visit
-- has ended is booking's to say.
-- KEYS  as in keys.go
-- ARGV  1 member  2 most former places remembered
-- returns 1 left | 0 there was no place in line
local member = ARGV[1]
local score = queued(member) or redis.call('ZSCORE', k_called, member) or redis.call('ZSCORE', k_missed, member)
if not score then return 0 end
unqueue(member)
redis.call('ZREM', k_restored, member)
redis.call('ZADD', k_gone, score, member)
trim(k_gone, tonumber(ARGV[2]))
return 1
