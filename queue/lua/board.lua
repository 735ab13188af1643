-- board: what an edge needs to answer polls from memory for a second. It also moves the
-- edge's mark, and notices what was forgotten.
-- KEYS  as in keys.go
-- ARGV  1 exact scores at the head  2 most samples behind  3 most former places
--       the last one: what the edge has seen (memory.lua)
-- returns {}, never configured, or
--   {{field, value, …} of the settings, {field, value, …} of the state,
--    now, waiting, called, standby, inside,
--    {score …} of the head, {rank, score, …} behind it ascending, {member, score, …} of places that left,
--    waiting in the priority line, and its head and points as above; "waiting" counts without them,
--    the edge's mark}
local settings = redis.call('HGETALL', k_settings)
if #settings == 0 then return {} end
local seen, now = ARGV[#ARGV], clock()
recovering(seen, now)
local _, mark = pulse(seen)
-- Every start of an edge brings a new mark. A new one finds many: those that have not
-- looked for a week are dropped. Should such an edge look again, it begins a recovery.
local function attend()
  local _, _, _, _, edge = witness(seen)
  redis.pcall('HSET', k_edges, 'a:' .. edge, f(now / 1000000))
  if mark ~= '1' or redis.call('HLEN', k_edges) < 400 then return end
  local all = redis.call('HGETALL', k_edges)
  for i = 1, #all, 2 do
    local id = string.match(all[i], '^a:(.*)$')
    if id and now / 1000000 - tonumber(all[i + 1]) > 7 * 86400 then redis.call('HDEL', k_edges, 'a:' .. id, 'm:' .. id) end
  end
end
attend()

local state = redis.call('HGETALL', k_state)

-- How many wait in a line, the scores at its head, and samples of rank and score behind.
local function ranks(key)
  local n, exact = redis.call('ZCARD', key), tonumber(ARGV[1])
  local scores, samples = {}, {}
  if n == 0 then return n, scores, samples end
  local head = redis.call('ZRANGE', key, 0, exact - 1, 'WITHSCORES')
  for i = 2, #head, 2 do scores[#scores + 1] = head[i] end
  local behind = n - exact
  if behind > 0 then
    local count = math.min(behind, tonumber(ARGV[2]))
    for i = 1, count do
      local rank = exact - 1 + math.floor(behind * i / count) -- the last one is the tail
      local at = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
      samples[#samples + 1] = f(rank)
      samples[#samples + 1] = at[2]
    end
  end
  return n, scores, samples
end
local n, scores, samples = ranks(k_wait)
local pn, pscores, psamples = ranks(k_priority)

-- At or below its line's watermark a place is asked for anyway: only those above it are shipped.
local function left(mark, to)
  return redis.call('ZRANGEBYSCORE', k_gone, '(' .. f(mark), to, 'WITHSCORES', 'LIMIT', 0, ARGV[3])
end
local gone = left(num(k_state, 'mark'), f(APART))
for _, v in ipairs(left(math.max(num(k_state, 'pmark'), APART), '+inf')) do gone[#gone + 1] = v end
return { settings, state, f(clock()), n, redis.call('ZCARD', k_called), redis.call('ZCARD', k_standby),
  redis.call('ZCARD', k_inside), scores, samples, gone, pn, pscores, psamples, mark }
