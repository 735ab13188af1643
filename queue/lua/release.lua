-- release: free the slots of ended visits. A slot is freed only as it was read:
-- one that was granted anew, or whose pass was renewed, since then stays.
-- KEYS  as in keys.go
-- ARGV  triples: member, jti, pass expiry (µs, as in the slot)
-- returns how many were freed
local freed, now = 0, clock()
local turn = num(k_state, 'turn') -- mean length of a visit, µs
for i = 1, #ARGV, 3 do
  local slot = redis.call('HGET', k_slots, ARGV[i])
  if slot then
    local jti, granted, expires = parse(slot)
    if jti == ARGV[i + 1] and f(expires) == ARGV[i + 2] then
      redis.call('HDEL', k_slots, ARGV[i])
      redis.call('ZREM', k_inside, ARGV[i])
      freed = freed + 1
      local took = math.max(now - granted, 0)
      turn = turn == 0 and took or turn * 0.95 + took * 0.05
    end
  end
end
if freed > 0 then redis.call('HSET', k_state, 'turn', f(turn)) end
return freed
