-- valve: write down what one edge decided. Every edge decides the same from the same
-- report; the first one's word counts, whoever read the state before that is refused.
-- KEYS  as in keys.go
-- ARGV  1 number of the decision before, as it was read  2 sequence it was made for
--       3 rate  4 cap  5 state of the plan (JSON)
-- returns 1 written | 0 another edge was first
local n = redis.call('HGET', k_state, 'vn') or '0'
if n ~= ARGV[1] then return 0 end
redis.call('HSET', k_state, 'vn', f(tonumber(n) + 1), 'vseq', ARGV[2], 'vrate', ARGV[3], 'vcap', ARGV[4],
  'vstate', ARGV[5], 'vat', f(clock()))
return 1
