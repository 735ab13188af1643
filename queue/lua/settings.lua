-- settings: take the operator's settings, never an older version over a newer.
-- KEYS  as in keys.go
-- ARGV  1 version  2 run  3 mode  4 state  5 rate per minute  6 cap  7 title
--       8 opens at (µs, 0: none)  9 booking URL  10 claim window (µs)
-- returns 1 written | 0 this version (with this address) or a newer one is there already
local old = redis.call('HMGET', k_settings, 'version', 'run', 'state', 'url')
if old[1] and tonumber(old[1]) > tonumber(ARGV[1]) then return 0 end
if old[1] and tonumber(old[1]) == tonumber(ARGV[1]) then
  -- The address is the booking role's configuration, not a part of the row: it
  -- moves without a new version.
  if old[4] == ARGV[9] then return 0 end
  redis.call('HSET', k_settings, 'url', ARGV[9])
  return 1
end

if old[2] and tonumber(old[2]) < tonumber(ARGV[2]) then
  -- The operator's reset ends all places. Those inside stay: they are visits, and
  -- only the bridge or the lease ends a visit.
  redis.call('UNLINK', k_wait, k_called, k_due, k_standby, k_gone, k_missed, k_restored)
  -- No place at or below this score comes back: it was of an earlier run.
  redis.call('HSET', k_state, 'base', redis.call('HGET', k_state, 'last') or '0')
end
if old[3] and old[3] ~= 'open' and ARGV[4] == 'open' then
  -- Nobody loses a call to a pause: no invitation runs out before this instant.
  redis.call('HSET', k_state, 'grace', f(clock() + tonumber(ARGV[10])))
end
redis.call('HSET', k_settings, 'version', ARGV[1], 'run', ARGV[2], 'mode', ARGV[3], 'state', ARGV[4],
  'rate', ARGV[5], 'cap', ARGV[6], 'title', ARGV[7], 'opens', ARGV[8], 'url', ARGV[9])
return 1
