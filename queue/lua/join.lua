-- join: give a fan a place, or find the one they have. Run twice it finds.
-- KEYS  as in keys.go
-- ARGV  1 member  2 floor: a new score lies above it (the highest any edge saw)
--       3 claim window (µs)  4 most restored places remembered
--       5 score of the place the fan shows a token of ('' none)  6 run of that token
--       7 what the edge has seen (memory.lua)
--       8 id of the invite ('' for none)  9 its quota  10 most former places remembered
--       11 where it leads: 'priority' into the priority line, else ahead of the line
--       with keys behind the room's own, the last one is their toll (limits/toll.lua)
-- returns {'unknown'} | {'closed'} | {'early', takes places at (µs, 0: not known)}
--         | {'usedup'}, the invite's places are taken; a place the fan has is kept
--         | what a toll that was not paid returns
--         {'waiting',  score, rank, created, run, 0, now, customer, incarnation, mark}
--         {'called',   score, 0,    created, run, due (0: standing by), now, customer, incarnation, mark}
--         {'admitted', score, 0,    0,       run, 0, now}
--         customer (hex): on whom a place counts that was moved here; '' or none: on this fan
--         incarnation, the edge's mark: when a score was given out, else none
local member, now = ARGV[1], clock()
local r = room()
if not r then return { 'unknown' } end

local function waiting(score, created)
  return { 'waiting', score, redis.call('ZRANK', line(score), member), created, r.run, 0, f(now), created == 0 and counts(member) or '' }
end

-- An invite moves its fan ahead of all who came by themselves, or into the priority
-- line, unless they are there, or further ahead (as in any line if that one has no share).
local invite = r.mode ~= 'passthrough' and ARGV[8] ~= '' and ARGV[8]
local priority = ARGV[11] == 'priority'
local function keeps(score)
  return not invite or tonumber(score) < 0 or priority and (preferred(score) or r.share == 0)
end
local waits = queued(member)
if waits and keeps(waits) then return waiting(waits, 0) end

local score = redis.call('ZSCORE', k_called, member)
if score then
  return { 'called', score, 0, 0, r.run, redis.call('ZSCORE', k_due, member) or 0, f(now), counts(member) }
end

local lease = redis.call('ZSCORE', k_inside, member)
if lease and tonumber(lease) > now then
  local _, granted, _, former = parse(redis.call('HGET', k_slots, member))
  if granted > now then return { 'called', former, 0, 0, r.run, 0, f(now) } end
  return { 'admitted', former, 0, 0, r.run, 0, f(now) }
end

if r.state == 'closed' or r.mode == 'reject' then return { 'closed' } end
-- Before the doors nobody lines up: a program would be ahead of all who were told so.
if r.state == 'scheduled' then return { 'early', redis.call('HGET', k_settings, r.mode == 'draw' and 'gathers' or 'opens') or '0' } end

score = redis.call('ZSCORE', k_missed, member)
if score and keeps(score) then -- one missed call, or one unused pass, is forgiven: the place of before, once
  redis.call('ZREM', k_missed, member)
  redis.call('ZADD', k_restored, score, member)
  trim(k_restored, tonumber(ARGV[4]))
  redis.call('ZADD', line(score), score, member)
  return waiting(score, 0)
end

recovering(ARGV[7], now)
local former = tonumber(ARGV[5])
if former and not waits and tonumber(ARGV[6]) == r.run and forgotten(member, former, now) then
  putback(member, former)
  return waiting(f(former), 0)
end

if invite and not redeemable(invite, member, tonumber(ARGV[9])) then return { 'usedup' } end
local unpaid = not waits and #KEYS > core and toll(now, core + 1, ARGV[#ARGV], redis.call('ZSCORE', k_gone, member))
if unpaid then return unpaid end
score = f(math.max(now, num(k_state, 'last') + 1, tonumber(ARGV[2]) + 1))
redis.call('HSET', k_state, 'last', score) -- before other writes (a toll's are like it): a full Redis refuses the first one, and after it none
redis.call('ZREM', k_restored, member) -- a place of its own, with its own forgiveness
if r.mode == 'passthrough' then -- no line: called on arrival
  redis.call('ZADD', k_called, score, member)
  redis.call('ZADD', k_due, f(now + tonumber(ARGV[3])), member)
  redis.call('HSET', k_state, 'mark', score)
  return { 'called', score, 0, 1, r.run, f(now + tonumber(ARGV[3])), f(now), '', pulse(ARGV[7]) }
end
if invite then
  redeem(invite, member)
  score = f(tonumber(score) + (priority and APART or -APART))
  redis.call('ZREM', k_missed, member)
  if waits then
    redis.call('ZREM', line(waits), member)
    -- boards must not tell the place of before any more
    redis.call('ZADD', k_gone, waits, member)
    trim(k_gone, tonumber(ARGV[10]))
  end
end
redis.call('ZADD', line(score), score, member)
local reply = waiting(score, waits and 0 or 1)
reply[9], reply[10] = pulse(ARGV[7])
return reply
