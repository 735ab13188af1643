-- allow: charges buckets by themselves, beside no verb. KEYS, ARGV[1] as toll's.
-- returns {'ok'} | what toll returns
local t = redis.call('TIME')
return toll(tonumber(t[1]) * 1000000 + tonumber(t[2]), 1, ARGV[1], true) or { 'ok' }
