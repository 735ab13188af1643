-- draw: one step of a drawing; any number of edges may run it at once. Each step
-- starts from a cursor in the state: what comes second, or again, changes nothing.
-- The numbers are reckoned by the edge (draw.go), as no HMAC is at hand here.
-- KEYS  as in keys.go
-- ARGV  1 run the caller knows  2 most places of one step  3 most former places kept
--       4 what the edge has seen (memory.lua)
--       5 what the caller brings: '' | 'digest' | 'scores'
--       digest: 6 SHA-256 of the list (hex)
--       scores: 6 index of the first place in the list, then a score for each from there
-- returns {phase, at, entries, cut, digest}
--   'no' nothing is to be drawn | 'lost' the list must be put back first
--   'collect' run it again | 'digest' bring it | 'scores' bring those from index `at` | 'done'
local bound, brings = tonumber(ARGV[2]), ARGV[5]
local r = room()
if not r or r.run ~= tonumber(ARGV[1]) then return { 'no' } end
local kept = r.digest ~= '' -- Postgres has the outcome; this store may have lost it since
if not kept and not (r.mode == 'draw' and r.state == 'drawing') then return { 'no' } end

local st = redis.call('HMGET', k_state, 'draw', 'drawat', 'drawn', 'cut', 'drawdigest')
local phase, at, n = st[1] or 'begin', tonumber(st[2] or 0), tonumber(st[3] or 0)
local cut, digest = tonumber(st[4] or 0), st[5] or ''
-- While places come back after a loss, the list would miss those who are still to come.
local hold = recovering(ARGV[4], clock())
if hold and (phase == 'begin' or phase == 'collect') then return { 'no' } end
if kept and digest ~= r.digest then return { 'lost' } end

local function save(...)
  redis.call('HSET', k_state, 'draw', phase, 'drawat', f(at), 'drawn', n, ...)
end

local function begin()
  -- Only a room that was open before has called anybody: they take part again.
  local called = redis.call('ZRANGE', k_called, 0, bound - 1, 'WITHSCORES')
  for i = 1, #called, 2 do
    redis.call('ZADD', line(called[i + 1]), called[i + 1], called[i])
    redis.call('HDEL', k_turns, called[i])
    redis.call('ZREM', k_called, called[i])
    redis.call('ZREM', k_due, called[i])
    redis.call('ZREM', k_standby, called[i])
  end
  if #called > 0 then return end
  -- The cut: who joins from now on has a higher score, and is not drawn. The
  -- watermark falls with the numbers: drawn scores lie below every time of arrival.
  local top = redis.call('ZRANGE', k_wait, -1, -1, 'WITHSCORES')
  cut = math.max(num(k_state, 'last'), tonumber(top[2] or 0))
  phase, at, n = 'collect', -1, 0 -- from zero: below are invitations
  save('cut', f(cut), 'last', f(cut), 'drawdigest', '', 'mark', '0', 'pturn', '0')
  redis.call('UNLINK', k_entries, k_missed, k_restored)
  trim(k_gone, tonumber(ARGV[3])) -- the highest: drawn places that are left need room
end

local function collect()
  local got = redis.call('ZRANGEBYSCORE', k_wait, '(' .. f(at), f(cut), 'WITHSCORES', 'LIMIT', 0, bound)
  local full = #got == 2 * bound
  local last, names = full and got[#got] or f(cut), {}
  for i = 1, #got, 2 do
    if not full or got[i + 1] ~= last then names[#names + 1] = got[i] end
  end
  if full then -- all of one score together: the cursor is a score
    for _, m in ipairs(redis.call('ZRANGEBYSCORE', k_wait, last, last)) do names[#names + 1] = m end
  end
  if #names > 0 then redis.call('APPEND', k_entries, table.concat(names)) end
  at, n = tonumber(last), n + #names
  if not full then phase, at = 'digest', 0 end
  save()
end

-- A place that was left is not made anew (XX), one of a latecomer (above the cut) or
-- with an invitation (below zero) keeps its score, and a second time nothing moves.
local function rescore()
  local count = #ARGV - 6
  local raw, members = redis.call('GETRANGE', k_entries, at * 16, (at + count) * 16 - 1), {}
  if #raw ~= count * 16 then return false end
  for i = 1, count do members[i] = string.sub(raw, i * 16 - 15, i * 16) end
  local scores = redis.call('ZMSCORE', k_wait, unpack(members))
  for i = 1, count do
    local s = tonumber(scores[i] or nil)
    if s and s >= 0 and s <= cut then
      redis.call('ZADD', k_wait, 'XX', ARGV[6 + i], members[i])
      redis.call('ZREM', k_gone, members[i]) -- a former place of the gathering, with a higher score than this one
    end
  end
  at = at + count
  if at >= n then phase = 'done' end
  save()
  return true
end

if phase == 'begin' then
  begin()
elseif phase == 'collect' then
  collect()
elseif phase == 'digest' and brings == 'digest' then
  phase, at, digest = n == 0 and 'done' or 'scores', 0, ARGV[6]
  save('drawdigest', digest)
elseif phase == 'scores' and brings == 'scores' and tonumber(ARGV[6]) == at and #ARGV > 6 then
  if not rescore() then return { 'lost' } end
elseif phase == 'list' then
  return { 'lost' }
end
return { phase == 'begin' and 'collect' or phase, f(at), n, f(cut), digest }
