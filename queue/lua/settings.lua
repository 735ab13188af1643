-- settings: take the operator's settings, never an older version over a newer.
-- KEYS  as in keys.go
-- ARGV  1 version  2 run  3 state  4 booking URL  5 claim window (µs)
--       then pairs: every other field of the settings, and its value
-- returns 1 written | 0 this version (with this address) or a newer one is there already
local version, run, state, url = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local old = redis.call('HMGET', k_settings, 'version', 'run', 'state', 'url')
if old[1] and tonumber(old[1]) > tonumber(version) then return 0 end
if old[1] and tonumber(old[1]) == tonumber(version) then
  -- The address is the booking role's configuration, not a part of the row: it
  -- moves without a new version.
  if old[4] == url then return 0 end
  redis.call('HSET', k_settings, 'url', url)
  return 1
end

if old[2] and tonumber(old[2]) < tonumber(run) then
  -- The operator's reset ends all places. Those inside stay: they are visits, and
  -- only the bridge or the lease ends a visit.
  redis.call('UNLINK', k_wait, k_called, k_due, k_standby, k_gone, k_missed, k_restored)
  redis.call('UNLINK', k_priority, k_turns, k_entries, k_moves, k_served)
  -- No place at or below this score comes back: it was of an earlier run.
  redis.call('HSET', k_state, 'base', redis.call('HGET', k_state, 'last') or '0', 'since', f(clock()))
  redis.call('HDEL', k_state, 'draw', 'drawat', 'drawn', 'cut', 'drawdigest') -- it is drawn anew
end
if old[3] and old[3] ~= 'open' and state == 'open' then
  -- Nobody loses a call to a pause: no invitation runs out before this instant.
  redis.call('HSET', k_state, 'grace', f(clock() + tonumber(ARGV[5])))
end
redis.call('HSET', k_settings, 'version', version, 'run', run, 'state', state, 'url', url)
for i = 6, #ARGV, 2 do redis.call('HSET', k_settings, ARGV[i], ARGV[i + 1]) end
if not old[1] then -- a memory begins; whether it is the first one only Postgres knows
  local now, hold = clock(), num(k_settings, 'hold')
  if hold > 0 then begin(now, 0, 0, hold) else redis.call('HSET', k_state, 'inc', f(now)) end
end
return 1
