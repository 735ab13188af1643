-- claim: admit a called fan, or let them stand by. Run twice it answers the same
-- slot: a lost reply costs neither the pass nor a second admission.
-- KEYS  as in keys.go
-- ARGV  1 member  2 run of the token  3 pass life (µs)  4 lease (µs)
--       5 report TTL (µs)  6 most renewals of a pass
--       7 claim window (µs)  8 a claim is late after (µs)
--       the last one: what the edge has seen (memory.lua)
-- returns {'unknown'} | {'oldrun'} | {'closed'} | {'wait'} | {'expired'}
--         {'paused'}                                  standing by from now on
--         {'standby', ask again in (µs), first (1|0)} standing by, the window has stopped
--         {'recovering', until at least (µs from now)}  nobody is admitted; standing by from now on
--         {'admitted', jti, granted, expires, fresh (1|0), incarnation, the edge's mark, customer}
--         customer (hex): on whom a place counts that was moved here, else ''
local member, passlife, lease = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local now, r = clock(), room()
if not r then return { 'unknown' } end
if r.run ~= tonumber(ARGV[2]) then return { 'oldrun' } end

local hold = recovering(ARGV[#ARGV], now)
local function admitted(jti, granted, expires, fresh)
  -- Whoever admitted: it is this edge that told the fan, and knows a memory without it.
  local inc, mark = pulse(ARGV[#ARGV])
  return { 'admitted', jti, f(granted), f(expires), fresh, inc, mark, counts(member) }
end

local slot = redis.call('HGET', k_slots, member)
local ends = slot and tonumber(redis.call('ZSCORE', k_inside, member) or 0)
if slot and ends > now then
  local jti, granted, expires, score, renewals, used = parse(slot)
  if granted > now then return { 'standby', f(granted - now), 0 } end
  if expires <= now then
    -- The reply was lost, or booking failed, for longer than a pass lives, and no report
    -- has freed the slot yet. The same pass id again, and the lease with it: a session must never outlive its slot.
    if renewals >= tonumber(ARGV[6]) then return { 'expired' } end
    expires = math.ceil((now + passlife) / 1000000) * 1000000
    redis.call('HSET', k_slots, member, table.concat({ jti, f(granted), f(expires), score, f(renewals + 1) }, '|') .. used)
    redis.call('ZADD', k_inside, f(now + lease), member)
  end
  return admitted(jti, granted, expires, 0)
end

local score = redis.call('ZSCORE', k_called, member)
if r.state == 'closed' or r.mode == 'reject' then return { 'closed' } end
if r.mode == 'passthrough' and r.state == 'open' then
  score = score or queued(member)
  if not score then return { 'expired' } end
  local jti, expires = grant(member, score, now, passlife, lease)
  return admitted(jti, now, expires, 1)
end
if not score then
  if queued(member) then return { 'wait' } end
  return { 'expired' }
end

local due = tonumber(redis.call('ZSCORE', k_due, member) or nil)
if due then -- the first claim of this call: learn how many come, and how many late
  local st = redis.call('HMGET', k_state, 'noshow', 'show', 'late')
  local late = due - now < tonumber(ARGV[7]) - tonumber(ARGV[8]) and 1 or 0
  redis.call('HSET', k_state, 'noshow', g((st[1] or 0) * 0.99), 'show', g((st[2] or 0) * 0.99 + 1),
    'late', g((st[3] or 0) * 0.99 + late))
  redis.call('ZREM', k_due, member)
end
local first = redis.call('ZADD', k_standby, redis.call('HGET', k_turns, member) or score, member)
if hold then return { 'recovering', f(math.max(hold - now, 0)) } end
if r.state ~= 'open' then return { 'paused' } end

local ahead = redis.call('ZRANK', k_standby, member)
local free = r.cap - redis.call('ZCARD', k_inside)
local fresh = reported(now, tonumber(ARGV[5]))
if not fresh or r.rate == 0 or free <= 0 then return { 'standby', '2000000', first } end
local turn = lastgrant(now) + r.spacing -- GCRA without burst: the earliest next admission
if ahead == 0 and turn <= now then
  redis.call('HSET', k_state, 'grant', g(now))
  local jti, expires = grant(member, score, now, passlife, lease)
  return admitted(jti, now, expires, 1)
end
return { 'standby', f(math.max(turn - now, 0) + ahead * r.spacing), first }
