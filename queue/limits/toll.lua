-- toll: what a new place costs. Everything is checked first and taken after, so
-- that a refusal takes nothing. Stands in front of a verb that calls
--   toll(now, first, blob)
-- now    µs by the store's clock
-- first  index of its first key in KEYS; all keys behind belong to it:
--        [mark] then the buckets, STRING "hard calm": the instants (µs) at which
--        each will be empty
-- blob   big-endian doubles: marked (1: the first key is a mark), life of the
--        mark (µs), pressure the mark pays for, least pressure; then per bucket
--        spacing, depth (refused above), spacing, depth (pressure above); 0: not counted
-- returns nil: paid | {'used'} the mark was taken before
--         | {'limit', bucket (1…), wait (µs)} | {'proof', pressure (text)}
local function toll(now, first, blob)
  local marked, life, covers, pressure = struct.unpack('>dddd', blob)
  if marked == 1 and redis.call('EXISTS', KEYS[first]) == 1 then return { 'used' } end
  local at, wait, by, due = 33, 0, 0, {}
  for i = first + marked, #KEYS do
    local spacing, depth, calm, free
    spacing, depth, calm, free, at = struct.unpack('>dddd', blob, at)
    local hard, soft = string.match(redis.call('GET', KEYS[i]) or '', '^(%d+) (%d+)$')
    hard, soft = math.max(now, tonumber(hard) or 0), math.max(now, tonumber(soft) or 0)
    if spacing > 0 then
      hard = hard + spacing
      if hard - now - depth > wait then wait, by = hard - now - depth, i - first - marked + 1 end
    end
    if calm > 0 then
      soft = soft + calm
      if soft - now > free then pressure = math.max(pressure, 1, (soft - now) / (free + calm)) end
      soft = math.min(soft, now + 16 * (free + calm)) -- an end to it: see doc.go
    end
    due[i] = { hard, soft }
  end
  if wait > 0 then return { 'limit', by, string.format('%.0f', math.ceil(wait)) } end
  if pressure >= 1 and pressure > covers then return { 'proof', string.format('%.3f', pressure) } end
  if marked == 1 then redis.call('SET', KEYS[first], '1', 'PX', string.format('%.0f', math.ceil(life / 1000))) end
  for i, tat in pairs(due) do
    local left = math.ceil((math.max(tat[1], tat[2]) - now) / 1000)
    if left > 0 then
      redis.call('SET', KEYS[i], string.format('%.0f %.0f', tat[1], tat[2]), 'PX', string.format('%.0f', left))
    end
  end
  return nil
end
