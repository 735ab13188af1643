-- movecode: note a code by which a place moves to another browser. A new code of its
-- kind replaces the place's old one.
-- KEYS  as in keys.go
-- ARGV  1 member  2 run of the token  3 digest of the code (16 bytes)
--       4 life (µs)  5 keep (1: good for any number of moves | 0: for one)
--       6 the place is a known customer's (1|0)  7 customer (hex)
--       8 most fields kept  9 what the edge has seen (memory.lua)
-- returns {'unknown'} | {'oldrun'} | {'closed'} | {'admitted'} | {'expired'} | {'full'}
--         {'ok', end of the code's life (µs)}
-- Fields of k_moves, each value beginning with the end of its life (µs):
--   d:digest → …|keep|used|known|customer|member, of the place; once used, of who took it
--   s:member, k:member → …|digest, the place's code for one move, and the kept one
--   o:member → …|score, of a place that was moved away
--   c:member → …|customer, on whom the place counts that was moved here
--   t:digest → …|member, the browser that used a known customer's code
local member, now = ARGV[1], clock()
local r = room()
if not r then return { 'unknown' } end
if r.run ~= tonumber(ARGV[2]) then return { 'oldrun' } end
if r.state == 'closed' or r.mode == 'reject' then return { 'closed' } end
recovering(ARGV[9], now)
if tonumber(redis.call('ZSCORE', k_inside, member) or 0) > now then return { 'admitted' } end
if not (queued(member) or redis.call('ZSCORE', k_called, member)) then return { 'expired' } end

-- A few fields at random, as Redis itself forgets keys: what has run out goes in time.
if redis.call('HLEN', k_moves) > 0 then
  local some = redis.call('HRANDFIELD', k_moves, 16, 'WITHVALUES')
  for i = 1, #some, 2 do
    if (tonumber(string.match(some[i + 1], '^(%d+)|')) or 0) <= now then redis.call('HDEL', k_moves, some[i]) end
  end
end
if redis.call('HLEN', k_moves) >= tonumber(ARGV[8]) then return { 'full' } end

local ends = f(now + tonumber(ARGV[4]))
local mine = (ARGV[5] == '1' and 'k:' or 's:') .. member
local old = redis.call('HGET', k_moves, mine)
if old then redis.call('HDEL', k_moves, 'd:' .. string.match(old, '^%d+|(.*)$')) end
redis.call('HSET', k_moves, mine, ends .. '|' .. ARGV[3],
  'd:' .. ARGV[3], table.concat({ ends, ARGV[5], '0', ARGV[6], ARGV[7], member }, '|'))
return { 'ok', ends }
