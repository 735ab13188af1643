-- board: what an edge needs to answer polls from memory for a second. It also counts
-- the beat, and notices what was forgotten.
-- KEYS  as in keys.go
-- ARGV  1 exact scores at the head  2 most samples behind  3 most former places
--       the last one: what the edge has seen (memory.lua)
-- returns {}, never configured, or
--   {{field, value, …} of the settings, {field, value, …} of the state,
--    now, waiting, called, standby, inside,
--    {score …} of the head, {rank, score, …} behind it ascending, {member, score, …} of places that left}
local settings = redis.call('HGETALL', k_settings)
if #settings == 0 then return {} end
recovering(ARGV[#ARGV], clock())
pulse()
local state = redis.call('HGETALL', k_state)

local n, exact = redis.call('ZCARD', k_wait), tonumber(ARGV[1])
local head, scores = redis.call('ZRANGE', k_wait, 0, exact - 1, 'WITHSCORES'), {}
for i = 2, #head, 2 do scores[#scores + 1] = head[i] end

local samples = {}
local behind = n - exact
if behind > 0 then
  local count = math.min(behind, tonumber(ARGV[2]))
  for i = 1, count do
    local rank = exact - 1 + math.floor(behind * i / count) -- the last one is the tail
    local at = redis.call('ZRANGE', k_wait, rank, rank, 'WITHSCORES')
    samples[#samples + 1] = f(rank)
    samples[#samples + 1] = at[2]
  end
end
-- At or below the watermark polls ask anyway: only those above it are shipped.
local gone = redis.call('ZRANGEBYSCORE', k_gone, '(' .. (redis.call('HGET', k_state, 'mark') or '0'), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
return { settings, state, f(clock()), n, redis.call('ZCARD', k_called), redis.call('ZCARD', k_standby),
  redis.call('ZCARD', k_inside), scores, samples, gone }
