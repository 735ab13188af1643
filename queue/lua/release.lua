-- release: free the slots of ended visits and unused passes. A slot is freed only as
-- it was read: one that was granted anew, or whose pass was renewed, since then stays.
-- Whoever did not use the pass may have the place back, once, like after a missed call.
-- KEYS  as in keys.go
-- ARGV  1 most missed places remembered
--       then fours: member, jti, pass expiry (µs, as in the slot), and whether the place may be
--       had back: 0 no, 1 if booking never told of the visit, 2 although it did
-- returns how many were freed
local freed, unused, now = 0, 0, clock()
local turn = num(k_state, 'turn') -- mean length of a visit, µs
local base, since = num(k_state, 'base'), num(k_state, 'since')
-- A place of an earlier run does not come back. Its score tells, if it is of a time; a
-- drawn one is not, then the instant of the grant has to (which may lie half a second ahead).
local function ours(score, granted)
  local at = arrived(score)
  if at then return at > base end
  return granted > since + 1000000
end
for i = 2, #ARGV, 4 do
  local member = ARGV[i]
  local slot = redis.call('HGET', k_slots, member)
  if slot then
    local jti, granted, expires, score, _, used = parse(slot)
    if jti == ARGV[i + 1] and f(expires) == ARGV[i + 2] then
      redis.call('HDEL', k_slots, member)
      redis.call('ZREM', k_inside, member)
      freed = freed + 1
      if score ~= '0' then -- of a visit that booking told of, the beginning is not known
        local took = math.max(now - granted, 0)
        turn = turn == 0 and took or turn * 0.95 + took * 0.05
      end
      -- A lease may be over without this script: then the fan may be in line again.
      if not (queued(member) or redis.call('ZSCORE', k_called, member)) then
        local again = redis.call('ZREM', k_restored, member) == 1
        local back = ARGV[i + 3] == '2' or ARGV[i + 3] == '1' and used == ''
        if back and not again and score ~= '0' and ours(tonumber(score), granted) then
          redis.call('ZADD', k_missed, score, member)
          unused = unused + 1
        else
          spend(member, now)
        end
      end
    end
  end
end
if unused > 0 then trim(k_missed, tonumber(ARGV[1])) end
if freed > 0 then redis.call('HSET', k_state, 'turn', f(turn)) end
return freed
