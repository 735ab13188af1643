-- call: one step of the leaderless caller; any number of edges may run it, each
-- 200 ms. It ends leases and missed invitations, grants slots to those standing
-- by, and invites from the head of the line.
-- KEYS  as in keys.go
-- ARGV  1 claim window (µs)  2 pass life (µs)  3 lease (µs)  4 report TTL (µs)
--       5 grant lookahead (µs)  6 invitation lookahead (µs), after which a claim is late
--       7 bound of each loop
--       8 most missed places remembered
--       the last one: what the edge has seen (memory.lua)
-- returns {more (1: a loop met its bound, run again), leases ended, missed, granted, invited, watermark,
--          incarnation, the edge's mark, watermark of the priority line, invited from it}
local window, passlife, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local bound = tonumber(ARGV[7])
local now, r = clock(), room()
if not r then return { 0, 0, 0, 0, 0, '0' } end

local over = redis.call('ZRANGEBYSCORE', k_inside, '-inf', f(now), 'LIMIT', 0, bound)
for _, m in ipairs(over) do
  redis.call('ZREM', k_inside, m)
  redis.call('HDEL', k_slots, m)
  redis.call('ZREM', k_restored, m)
  spend(m, now)
end
local hold = recovering(ARGV[#ARGV], now)
local inc, seen = pulse(ARGV[#ARGV])
local pass = r.mode == 'passthrough'
local fresh = reported(now, tonumber(ARGV[4]))
-- A draw whose numbers this store lost: who is first is known when they are back.
local lost = false
if r.digest ~= '' then
  local d = redis.call('HMGET', k_state, 'draw', 'drawdigest')
  lost = d[1] ~= 'done' or d[2] ~= r.digest
end
if hold and not pass or r.state ~= 'open' or r.mode == 'reject' or lost or not (pass or fresh and r.rate > 0 and r.cap > 0) then
  local marks = redis.call('HMGET', k_state, 'mark', 'pmark')
  return { #over == bound and 1 or 0, #over, 0, 0, 0, marks[1] or '0', inc, seen, marks[2] or '0', 0 }
end

-- Missed calls. Shares decay by 1 % an event, so a bad minute is forgotten.
local st = redis.call('HMGET', k_state, 'noshow', 'show', 'grace', 'mark', 'late', 'pmark')
local noshow, show, late = tonumber(st[1] or 0), tonumber(st[2] or 0), tonumber(st[5] or 0)
local missed = {}
if now >= tonumber(st[3] or 0) then
  missed = redis.call('ZRANGEBYSCORE', k_due, '-inf', f(now), 'LIMIT', 0, bound)
end
for _, m in ipairs(missed) do
  local score = redis.call('ZSCORE', k_called, m)
  redis.call('ZREM', k_called, m)
  redis.call('ZREM', k_due, m)
  redis.call('HDEL', k_turns, m)
  -- A place that was restored once and missed again goes to the tail next time.
  if score and redis.call('ZREM', k_restored, m) == 0 then
    redis.call('ZADD', k_missed, score, m)
  else
    spend(m, now)
  end
  noshow, show, late = noshow * 0.99 + 1, show * 0.99, late * 0.99
end
if #missed > 0 then
  trim(k_missed, tonumber(ARGV[8]))
  redis.call('HSET', k_state, 'noshow', g(noshow), 'show', g(show), 'late', g(late))
end

-- Grants, in score order, each at its own instant: spacing does not depend on
-- when anybody polls, and the rate is met although this runs only now and then.
local free = r.cap - redis.call('ZCARD', k_inside)
local last, granted = lastgrant(now), 0
while granted < bound and (pass or free > 0) do
  local at = pass and now or math.max(last + r.spacing, now)
  if at > now + tonumber(ARGV[5]) then break end
  local head = redis.call('ZRANGE', k_standby, 0, 0, 'WITHSCORES')
  if not head[1] then break end
  grant(head[1], redis.call('ZSCORE', k_called, head[1]) or head[2], at, passlife, lease)
  last, free, granted = at, free - 1, granted + 1
end
if granted > 0 then redis.call('HSET', k_state, 'grant', g(last)) end

-- Invitations: until as many are expected to come as the slots and the next
-- seconds of the rate can take. Those standing by have come; of the fresh
-- invitations some will not; of those unanswered for long few will, and counting
-- them in full for a whole window would starve the rate. Priors: ten came, half of
-- ten late ones came.
local want = bound
if not pass then
  local share = math.min(0.5, noshow / (noshow + show + 10))
  local tardy = (late + 5) / (late + noshow + 10)
  local unanswered = redis.call('ZCARD', k_due)
  local recent = redis.call('ZCOUNT', k_due, f(now + window - tonumber(ARGV[6])), '+inf')
  local expected = redis.call('ZCARD', k_standby) + recent * (1 - share) + (unanswered - recent) * tardy
  local paced = math.max(1, r.rate / 60 * tonumber(ARGV[6]) / 1000000)
  want = free > 0 and math.floor((math.min(free, paced) - expected) / (1 - share) + 0.5) or 0
end
want = math.min(want, bound)
local invited, ofPriority, mark, pmark = 0, 0, st[4] or '0', st[6] or '0' -- the marks as text
if want > 0 then
  local head, plain, prior = nextOf(want, r.share)
  local due, turn = f(now + window), turns()
  for i = 1, #head, 2 do
    local member, score = head[i], head[i + 1]
    redis.call('ZADD', k_called, score, member)
    redis.call('ZADD', k_due, due, member)
    if preferred(score) then
      turn(member, mark)
      if tonumber(score) > tonumber(pmark) then pmark = score end
    elseif tonumber(score) > tonumber(mark) then
      mark = score
    end
  end
  invited, ofPriority = plain + prior, prior
  if plain > 0 then redis.call('ZREMRANGEBYRANK', k_wait, 0, plain - 1) end
  if prior > 0 then redis.call('ZREMRANGEBYRANK', k_priority, 0, prior - 1) end
  if invited > 0 then redis.call('HSET', k_state, 'mark', mark, 'pmark', pmark) end
end
local more = #over == bound or #missed == bound or granted == bound or invited == bound
return { more and 1 or 0, #over, #missed, granted, invited, mark, inc, seen, pmark, ofPriority }
