-- board: what an edge needs to answer polls from memory for a second. Reads only.
-- KEYS  as in keys.go
-- ARGV  1 exact scores at the head  2 most samples behind  3 most former places
-- returns {}, never configured, or
--   {{settings: version run mode state rate cap title opens url},
--    {state: last mark report available total lanes grace turn noshow show admitted soldout},
--    now, waiting, called, standby, inside,
--    {score …} of the head, {rank, score, …} behind it ascending, {member, score, …} of places that left}
local s = redis.call('HMGET', k_settings, 'version', 'run', 'mode', 'state', 'rate', 'cap', 'title', 'opens', 'url')
if not s[1] then return {} end
local st = redis.call('HMGET', k_state, 'last', 'mark', 'report', 'available', 'total', 'lanes', 'grace', 'turn',
  'noshow', 'show', 'admitted', 'soldout')
local function text(v) for i = 1, #v do v[i] = v[i] or '' end return v end -- a nil would cut the reply short

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
local gone = redis.call('ZRANGEBYSCORE', k_gone, '(' .. (st[2] or '0'), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
return { text(s), text(st), f(clock()), n, redis.call('ZCARD', k_called), redis.call('ZCARD', k_standby),
  redis.call('ZCARD', k_inside), scores, samples, gone }
