-- recovery: what the memory is worth, and this store's clock. Reads only.
-- KEYS  as in keys.go
-- returns {incarnation (0 none), a recovery is on (1|0), now}
local st = redis.call('HMGET', k_state, 'inc', 'hold')
return { st[1] or '0', st[2] and 1 or 0, f(clock()) }
