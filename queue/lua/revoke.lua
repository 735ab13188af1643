-- revoke: put what is revoked in force, a part a run. A run of an older order than
-- one that has begun changes nothing, so that two bridges cannot mix their lists.
-- Places named leave the line; nobody of theirs keeps the others waiting.
-- KEYS  as in keys.go
-- ARGV  1 version  2 begin | part | end
--       of part: fields to add, each after '+', and to take away, each after '-'
--       of end:  3 everybody admitted before (µs, 0: nobody by this)
-- returns 1 | 0 there is this version or a newer one, or a newer one has begun
local version, step = tonumber(ARGV[1]), ARGV[2]
local there = redis.call('HMGET', k_revoked, 'version', 'next')
if tonumber(there[1] or 0) >= version or tonumber(there[2] or 0) > version then return 0 end
if step == 'begin' then
  redis.call('HSET', k_revoked, 'next', ARGV[1])
elseif step == 'end' then
  redis.call('HSET', k_revoked, 'version', ARGV[1], 'before', ARGV[3])
  redis.call('HSET', k_state, 'revoked', ARGV[1]) -- the boards show it, and edges read the list when it moves
else
  for i = 3, #ARGV do
    local sign, field = string.sub(ARGV[i], 1, 1), string.sub(ARGV[i], 2)
    if sign == '-' then
      redis.call('HDEL', k_revoked, field)
    else
      redis.call('HSET', k_revoked, field, '1')
      local hex = string.match(field, '^p:(%x+)$')
      if hex then drop((string.gsub(hex, '%x%x', function(c) return string.char(tonumber(c, 16)) end))) end
    end
  end
end
return 1
