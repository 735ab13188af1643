-- move: give a place to the browser that shows its code, in one step: the old one
-- leaves the line, the new one stands at the same score with the same end of the
-- call. Run twice by the same browser it finds the place there. A known customer's
-- place has no browser of its own: it stays where it is.
-- KEYS  as in keys.go; fields of k_moves as in movecode.lua
-- ARGV  1 member of the new browser  2 most former places remembered
--       3 how long moves are remembered (µs)  4 what the edge has seen (memory.lua)
--       then digests of the code, one for each secret it may be made with
-- returns {'unknown'} | {'invalid'} | {'closed'} | {'drawing'} | {'admitted'} | {'expired'} | {'recovering'}
--         {'waiting', score, rank, run, 0,  known (1|0), customer (hex), member, keep (1|0), incarnation, mark}
--         {'called',  score, 0,    run, due (0: standing by), known, customer, member, keep}
--         {'admitted', score, 0,  run, 0, known, customer, member, keep}  by a kept code: the same pass again
--         incarnation, the edge's mark: where something was written, else none
--         {'inside'} the browser is inside already, or the place it took is
local new, now = ARGV[1], clock()
local r = room()
if not r then return { 'unknown' } end
local hold = recovering(ARGV[4], now)

local digest, ends, keep, used, known, customer, old
for i = 5, #ARGV do
  local e = redis.call('HGET', k_moves, 'd:' .. ARGV[i])
  if e then
    digest = ARGV[i]
    ends, keep, used, known, customer, old = string.match(e, '^(%d+)|(%d)|(%d)|(%d)|(%x+)|(.*)$')
  end
end
if not digest or tonumber(ends) <= now then return { 'invalid' } end
if r.state == 'closed' or r.mode == 'reject' then return { 'closed' } end

local function stands(member)
  local score = queued(member)
  if score then return { 'waiting', score, redis.call('ZRANK', line(score), member), r.run, 0, known, customer, member, keep } end
  score = redis.call('ZSCORE', k_called, member)
  if score then return { 'called', score, 0, r.run, redis.call('ZSCORE', k_due, member) or 0, known, customer, member, keep } end
  if tonumber(redis.call('ZSCORE', k_inside, member) or 0) > now then
    if keep == '0' then return { 'inside' } end
    local _, _, _, former = parse(redis.call('HGET', k_slots, member))
    return { 'admitted', former, 0, r.run, 0, known, customer, member, keep }
  end
  return { hold and 'recovering' or 'expired' }
end

-- A place that is left, for the boards: an older, later one stays the one that is told.
local function leave(member, at)
  if at and tonumber(at) > (tonumber(redis.call('ZSCORE', k_gone, member) or nil) or -math.huge) then
    redis.call('ZADD', k_gone, at, member)
  end
end

if known == '1' then
  if used == '1' and redis.call('HGET', k_moves, 't:' .. digest) ~= ends .. '|' .. new then return { 'invalid' } end
  local answer = stands(old)
  if #answer == 1 then return answer end
  leave(new, queued(new) or redis.call('ZSCORE', k_called, new))
  drop(new)
  if keep == '0' and used == '0' then
    redis.call('HSET', k_moves, 'd:' .. digest, table.concat({ ends, keep, '1', known, customer, old }, '|'),
      't:' .. digest, ends .. '|' .. new)
  end
  answer[10], answer[11] = pulse(ARGV[4])
  return answer
end
if old == new then return stands(new) end -- again, or back to where it is
if used == '1' then return { 'invalid' } end
-- The list of a draw names members: a place that moved while it is drawn would miss its number.
if r.state == 'drawing' or r.digest ~= '' and redis.call('HGET', k_state, 'draw') ~= 'done' then return { 'drawing' } end

local score = queued(old)
local from = score and line(score)
if not score then
  from, score = k_called, redis.call('ZSCORE', k_called, old)
end
if not score then
  if keep == '1' then return stands(old) end
  if tonumber(redis.call('ZSCORE', k_inside, old) or 0) > now then return { 'admitted' } end
  return { hold and 'recovering' or 'expired' }
end
if tonumber(redis.call('ZSCORE', k_inside, new) or 0) > now then return { 'inside' } end

local due, standby = redis.call('ZSCORE', k_due, old), redis.call('ZSCORE', k_standby, old)
local turn = redis.call('HGET', k_turns, old)
local forgiven = redis.call('ZSCORE', k_restored, old)
leave(new, queued(new) or redis.call('ZSCORE', k_called, new))
leave(old, score)
trim(k_gone, tonumber(ARGV[2]))
drop(new)
drop(old)
redis.call('ZADD', from, score, new)
if due then redis.call('ZADD', k_due, due, new) end
if turn then redis.call('HSET', k_turns, new, turn) end
if standby then redis.call('ZADD', k_standby, standby, new) end
if forgiven then redis.call('ZADD', k_restored, forgiven, new) end
spend(old, now)

for _, kind in ipairs({ 's:', 'k:' }) do -- codes of both places are over, but the one that is kept
  for _, member in ipairs({ old, new }) do
    local code = redis.call('HGET', k_moves, kind .. member)
    local named = code and string.match(code, '^%d+|(.*)$')
    if named and named ~= digest then redis.call('HDEL', k_moves, 'd:' .. named) end
    if code then redis.call('HDEL', k_moves, kind .. member) end
  end
end
local remembered = f(now + tonumber(ARGV[3]))
redis.call('HSET', k_moves, 'd:' .. digest, table.concat({ ends, keep, keep == '1' and '0' or '1', known, customer, new }, '|'),
  'o:' .. old, remembered .. '|' .. score, 'c:' .. new, remembered .. '|' .. customer)
if keep == '1' then redis.call('HSET', k_moves, 'k:' .. new, ends .. '|' .. digest) end
redis.call('HDEL', k_moves, 'o:' .. new, 'c:' .. old)
local answer = stands(new)
answer[10], answer[11] = pulse(ARGV[4])
return answer
