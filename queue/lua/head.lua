-- Opens every script: names for KEYS (the order of keys.go) and what the verbs
-- share. A number becomes text by f() or g() only: tostring() keeps 14 digits of a
-- score's 16, which makes ties and inversions.
local k_settings, k_state, k_wait, k_called = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local k_due, k_standby, k_inside, k_slots = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local k_gone, k_missed, k_restored, k_priority = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local k_entries, k_revoked, k_moves, k_invites, k_served = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local k_turns, k_edges = KEYS[18], KEYS[19]

local function f(n) return string.format('%.0f', n) end
local function g(n) return string.format('%.2f', n) end

local function clock() -- µs, by the store's clock: every edge sees the same one
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- The room as the operator wants it, and as its valve allows; nil when no settings were ever shipped.
local function room()
  local v = redis.call('HMGET', k_settings, 'mode', 'state', 'rate', 'cap', 'run', 'digest', 'valve', 'share')
  if not v[1] then return nil end
  local r = { mode = v[1], state = v[2], rate = tonumber(v[3]), cap = tonumber(v[4]), run = tonumber(v[5]),
    digest = v[6] or '', -- of the draw whose order counts; '' without one
    share = tonumber(v[8] or nil) or 30 } -- settings of before the share: as the schema begins
  if v[7] == 'adaptive' then -- what the valve decided, never above the operator's numbers
    local s = redis.call('HMGET', k_state, 'vrate', 'vcap', 'vat')
    if math.abs(clock() - (tonumber(s[3]) or 0)) > 15000000 then s = {} end -- nobody steers: nobody comes in
    r.rate, r.cap = math.min(r.rate, tonumber(s[1]) or 0), math.min(r.cap, tonumber(s[2]) or 0)
  end
  -- Spacing of admissions, rounded up to a quarter µs: at today's magnitude sums of
  -- quarters are exact in a double, so a long sale does not drift over its rate.
  if r.rate > 0 then r.spacing = math.ceil(240000000 / r.rate) / 4 end
  return r
end

local function num(key, field) return tonumber(redis.call('HGET', key, field)) or 0 end

-- A replica that takes over may have a clock behind: what lies further ahead than its
-- author could have written it is of the other clock, and must stop nobody for that long.

-- Whether booking has reported within ttl (µs).
local function reported(now, ttl)
  local at = num(k_state, 'report')
  return at <= now + 1000000 and now - at <= ttl
end

-- When the last admission was granted, or is; 0 when not known.
local function lastgrant(now)
  local at = num(k_state, 'grant')
  return at <= now + 2000000 and at or 0
end

-- The score alone tells where a place waits. By an invite that leads ahead of the line
-- it lies this far below the time of arrival, so below zero and before every other in
-- k_wait; by one into the priority line this far above it, and it waits in k_priority.
local APART = 4503599627370496 -- 2^52

local function preferred(score) return tonumber(score) > APART end

local function line(score) return preferred(score) and k_priority or k_wait end

-- The score of a place that waits, in whichever line; else false.
local function queued(member)
  return redis.call('ZSCORE', k_wait, member) or redis.call('ZSCORE', k_priority, member)
end

-- Takes a place out of the line, wherever it stands. k_restored is not the line.
local function unqueue(member)
  redis.call('ZREM', k_wait, member)
  redis.call('ZREM', k_priority, member)
  redis.call('HDEL', k_turns, member)
  redis.call('ZREM', k_called, member)
  redis.call('ZREM', k_due, member)
  redis.call('ZREM', k_standby, member)
  redis.call('ZREM', k_missed, member)
end

-- Moves a place inside at the instant `at` (µs, may lie a moment ahead). The
-- pass id is made of place and instant, so that it needs no random source.
local function grant(member, score, at, passlife, lease)
  unqueue(member)
  -- k_restored stays until the visit ends: a pass that nobody uses is forgiven once, too.
  -- Whole seconds, as in the pass itself: slot and pass expire at one instant.
  local expires = math.ceil((at + passlife) / 1000000) * 1000000
  local jti = redis.sha1hex(member .. f(at))
  redis.call('ZADD', k_inside, f(at + lease), member)
  redis.call('HSET', k_slots, member, table.concat({ jti, f(at), f(expires), score, '0' }, '|'))
  redis.call('HINCRBY', k_state, 'admitted', 1)
  return jti, expires
end

local function parse(slot) -- jti, granted, expires, score (text), renewals, used ('|1' once booking has told of the visit, or '')
  local jti, granted, expires, score, renewals, used = string.match(slot, '([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)(.*)')
  return jti, tonumber(granted), tonumber(expires), score, tonumber(renewals), used
end

-- An invite's quota counts members, each once: whoever left may come back by it.
local function redeemable(id, member, quota)
  return redis.call('HEXISTS', k_invites, id .. ':' .. member) == 1 or num(k_invites, id) < quota
end

local function redeem(id, member)
  if redis.call('HSETNX', k_invites, id .. ':' .. member, '1') == 1 then redis.call('HINCRBY', k_invites, id, 1) end
end

-- On whom a place counts that was moved here (hex, movecode.lua); '' for any other.
local function counts(member)
  return string.match(redis.call('HGET', k_moves, 'c:' .. member) or '', '|(%x+)$') or ''
end

-- Takes a place out of the line for good, and out of what could give it back.
local function drop(member)
  for _, key in ipairs({ k_wait, k_priority, k_called, k_due, k_standby, k_missed, k_restored }) do
    redis.call('ZREM', key, member)
  end
  redis.call('HDEL', k_turns, member)
end

-- Bounds a set that remembers former places: the lowest scores, nearest to being
-- forgotten anyway, go first.
local function trim(key, limit) redis.call('ZREMRANGEBYRANK', key, 0, -(limit + 1)) end

