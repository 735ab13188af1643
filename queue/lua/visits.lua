-- visits: tell the line who is inside and who was, as booking knows it. A visit that
-- has no slot here gets one, with the longest lease it could have; a slot that has a
-- visit is marked, so that it never counts as unused, however long no report came
-- after; a place that was used is kept from coming back.
-- KEYS  as in keys.go
-- ARGV  1 lease (µs)
--       then threes: member, jti ('' for a visit that is over), when it began (µs, 0: now)
-- returns how many slots were made
local now, made = clock(), 0
local lease = tonumber(ARGV[1])
for i = 2, #ARGV, 3 do
  local member, jti, began = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  if began == 0 then began = now end
  local slot = redis.call('HGET', k_slots, member)
  if jti == '' then
    local score = queued(member) or redis.call('ZSCORE', k_called, member)
    local stays = score and not visited(member, tonumber(score), began)
    if score and not stays then unqueue(member) end
    -- A mark stays as long as the place: of two visits told of, the later may be its own.
    if not (stays and redis.call('HGET', k_served, member) == '0')
      and began > (tonumber(redis.call('HGET', k_served, member) or 0)) then
      redis.call('HSET', k_served, member, f(began))
    end
  elseif not slot then
    redis.call('HSET', k_slots, member, table.concat({ jti, f(now), f(math.ceil(now / 1000000) * 1000000), '0', '0', '1' }, '|'))
    redis.call('ZADD', k_inside, f(now + lease), member)
    unqueue(member)
    made = made + 1
  else
    local there, _, _, _, _, used = parse(slot)
    if there == jti and used == '' then redis.call('HSET', k_slots, member, slot .. '|1') end
  end
end
return made
