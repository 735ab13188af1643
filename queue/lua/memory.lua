-- Part of every script, after head.lua: what this room's memory is worth.
-- Fields of the state: inc   µs at which this memory began (1: not known)
--                      lost  absent: nothing was forgotten; else places up to this score
--                            may be missing here, and are put back when they are shown
--                      hold  present while a recovery is on: µs until which nobody is
--                            admitted at least; only a report that began later removes it
--                      known with lost: when the memory that was lost had its last report, as
--                            far as this one remembers (0: it remembers nothing)
-- Each edge has a mark of its own (k_edges), which grows with whatever it is answered here
-- and must not be forgotten: marks of others would hide what is missing of its own.
-- `seen` is what the asking edge has seen: inc|its mark|last score|length of a hold (µs)|edge.

-- A token older than this is not put back: its sessions are not asked for any more.
local KEPT = 30 * 86400 * 1000000
local SKEW = 5000000 -- between this clock and the database's, generously

local function witness(seen) -- inc, mark, last, hold, edge
  local inc, mark, last, hold, edge = string.match(seen, '^(%d+)|(%d+)|(%d+)|(%d+)|(%x+)$')
  return tonumber(inc or 0), tonumber(mark or 0), tonumber(last or 0), tonumber(hold or 180000000), edge or ''
end

-- Moves the edge's mark on and returns inc and mark, as text: the answer carries both, so
-- that the edge knows a memory without what it was just told.
local function pulse(seen)
  local _, _, _, _, edge = witness(seen)
  local mark = redis.pcall('HINCRBY', k_edges, 'm:' .. edge, 1) -- a full Redis refuses it; reading goes on
  return redis.call('HGET', k_state, 'inc') or '0', type(mark) == 'number' and f(mark) or '0'
end

-- Begins a memory that may have forgotten. Its number is above any seen: of two
-- edges that notice one loss the second finds it noticed.
local function begin(now, above, last, hold)
  local st = redis.call('HMGET', k_state, 'inc', 'last', 'hold', 'known', 'report')
  last = math.max(now, last, tonumber(st[2]) or 0)
  local known = st[3] and st[4] or st[5] or '0' -- a loss within a recovery: what was known before both
  redis.call('HSET', k_state, 'inc', f(math.max(now, above + 1, (tonumber(st[1]) or 0) + 1)),
    'last', f(last), 'lost', f(last), 'hold', f(now + hold), 'known', known)
end

-- Compares the memory with what the edge has seen of it, and begins a recovery when
-- something is missing. Returns the end of the hold while a recovery is on, else nil.
local function recovering(seen, now)
  local st = redis.call('HMGET', k_state, 'inc', 'last', 'lost', 'hold')
  local inc, last = tonumber(st[1]) or 0, tonumber(st[2]) or 0
  local s_inc, s_mark, s_last, hold, edge = witness(seen)
  local older = s_inc == inc and (last < s_last or num(k_edges, 'm:' .. edge) < s_mark)
  local other = s_inc > 0 and inc > s_inc and not st[3] -- began anew, and nobody noticed
  if inc < s_inc or older or other then
    begin(now, s_inc, s_last, hold)
    return now + hold
  end
  if inc == 0 then redis.call('HSET', k_state, 'inc', '1') end -- kept by a version that did not count
  if inc > s_inc and st[3] and last < s_last then -- noticed by an edge that had seen less
    redis.call('HSET', k_state, 'last', f(s_last), 'lost', f(s_last))
  end
  return st[4] and tonumber(st[4]) or nil
end

-- When the place was given out; nil for a drawn one.
local function arrived(score)
  if score < 0 then return score + APART end
  if preferred(score) then return score - APART end
  if score >= 2 ^ 50 then return score end
end

-- Whether a place that is nowhere here was forgotten rather than ended.
local function forgotten(member, score, now)
  local lost = tonumber(redis.call('HGET', k_state, 'lost') or nil)
  local at = arrived(score)
  if not lost or at and (at > lost or now - at > KEPT) then return false end
  local left = tonumber(redis.call('ZSCORE', k_gone, member) or nil)
  if left and (arrived(left) or left) >= (at or score) then return false end
  local served = tonumber(redis.call('HGET', k_served, member) or nil)
  if served and served > 0 and served + SKEW >= (at or num(k_settings, 'drawn')) then return false end
  return true
end

-- Puts a forgotten place back in line. Where it stands among others that were not
-- forgotten, it bears a mark: a token alone speaks for it (visits.lua).
local function putback(member, score)
  redis.call('ZADD', line(score), f(score), member)
  if num(k_state, 'known') > 0 then redis.call('HSET', k_served, member, '0') end
end

-- Whether a waiting place is the one of a visit that began then (µs). One taken after it
-- is another. So is one that this memory has kept, unless the visit can be among what it
-- forgot: it knew of earlier ones, and the place stands although, as after a revocation.
local function visited(member, score, began)
  local before = arrived(score) or num(k_settings, 'drawn')
  if redis.call('HGET', k_served, member) ~= '0' then before = math.max(before, num(k_state, 'known')) end
  return began + SKEW >= before
end

-- A place is over for good. In a memory that forgot, a token alone would bring it back.
local function spend(member, now)
  if redis.call('HEXISTS', k_state, 'lost') == 1 then redis.call('HSET', k_served, member, f(now)) end
end

