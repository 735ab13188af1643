-- restore: put a place back that this memory has forgotten, at its signed score. Run
-- twice it finds the place there.
-- KEYS  as in keys.go
-- ARGV  1 member  2 score  3 run of the token  4 what the edge has seen (memory.lua)
-- returns {'unknown'} | {'oldrun'}
--         {'ended'}                              it is over, not forgotten
--         {'there'}                              it has a state; ask again
--         {'back', rank, recovery on (1|0), inc} waiting
local member, score, now = ARGV[1], tonumber(ARGV[2]), clock()
local r = room()
if not r then return { 'unknown' } end
if r.run ~= tonumber(ARGV[3]) then return { 'oldrun' } end

local hold = recovering(ARGV[4], now)
local st = redis.call('HMGET', k_state, 'inc', 'last', 'lost')
local at = arrived(score)
if not st[3] and at and at > (tonumber(st[2]) or 0) then
  -- A place that this memory cannot have given out: the token is the proof of a loss
  -- that no edge has seen. One from before it began is none: the room may have been
  -- rehearsed, and emptied, or begun anew.
  local _, _, _, length = witness(ARGV[4])
  hold = now + length
  begin(now, 0, at, length)
end

if queued(member) or redis.call('ZSCORE', k_called, member)
  or tonumber(redis.call('ZSCORE', k_inside, member) or 0) > now then
  return { 'there' }
end
if redis.call('ZSCORE', k_missed, member) or not forgotten(member, score, now) then return { 'ended' } end
putback(member, score)
if at and at > num(k_state, 'last') then redis.call('HSET', k_state, 'last', f(at)) end
return { 'back', redis.call('ZRANK', line(score), member), hold and 1 or 0, redis.call('HGET', k_state, 'inc') }
