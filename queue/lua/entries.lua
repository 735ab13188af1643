-- entries: put back, piece by piece, the list of a draw that this store lost. Any
-- number of processes may do it at once: a piece counts only where the list ends.
-- KEYS  as in keys.go
-- ARGV  1 run  2 digest of the list (hex)  3 cut (µs)  4 bytes of the whole list
--       5 offset of the piece  6 the piece
-- returns how many bytes are there | -1 nothing is missing, or the room has another draw
local r = room()
if not r or r.run ~= tonumber(ARGV[1]) or r.digest == '' or r.digest ~= ARGV[2] then return -1 end
local st = redis.call('HMGET', k_state, 'draw', 'drawdigest')
local have, whole = redis.call('STRLEN', k_entries), tonumber(ARGV[4])
if st[2] == r.digest and (st[1] == 'scores' or st[1] == 'done') and have == whole then return -1 end
if st[1] ~= 'list' then
  redis.call('HSET', k_state, 'draw', 'list', 'drawdigest', '')
  redis.call('UNLINK', k_entries)
  have = 0
end
if have == tonumber(ARGV[5]) and have < whole then have = redis.call('APPEND', k_entries, ARGV[6]) end
if have == whole then -- who stands in line with a score of the gathering gets the drawn one (again)
  redis.call('HSET', k_state, 'draw', whole == 0 and 'done' or 'scores', 'drawat', 0, 'drawn', whole / 16,
    'cut', ARGV[3], 'drawdigest', ARGV[2])
end
return have
