-- toll: what a new place costs. Everything is checked first and taken after, so
-- that a refusal takes nothing. Stands in front of a verb that calls
--   toll(now, first, blob, again)
-- now    µs by the store's clock
-- first  index of its first key in KEYS; all keys behind belong to it:
--        [mark] then the buckets, STRING of two doubles: the instants (µs) at which
--        the hard and the calm one will be empty
-- blob   big-endian doubles: marked (1: the first key is a mark), life of the
--        mark (µs), pressure the mark pays for, least pressure, personal (1: the
--        first bucket counts only again); then per bucket
--        spacing, depth (refused above), spacing, depth (pressure above); 0: not counted
-- again  the fan had a place before
-- returns nil: paid | {'used'} the mark was taken before
--         | {'limit', bucket (1…), wait (µs)} | {'proof', pressure (text)}
local function toll(now, first, blob, again)
  local unpacked, max = struct.unpack, math.max
  local marked, life, covers, pressure, personal = unpacked('>ddddd', blob)
  if marked == 1 and redis.call('EXISTS', KEYS[first]) == 1 then return { 'used' } end
  local bucket1 = first + marked
  local from = bucket1
  if personal == 1 and not again then from = from + 1 end
  local held = redis.call('MGET', unpack(KEYS, from))
  local at, wait, by, due = 41 + 32 * (from - bucket1), 0, 0, {}
  for i = 1, #held do
    local spacing, depth, calm, free, hard, soft
    spacing, depth, calm, free, at = unpacked('>dddd', blob, at)
    if held[i] then hard, soft = unpacked('>dd', held[i]) else hard, soft = now, now end
    hard, soft = max(now, hard), max(now, soft)
    if spacing > 0 then
      hard = hard + spacing
      if hard - now - depth > wait then wait, by = hard - now - depth, i + from - bucket1 end
    end
    if calm > 0 then
      soft = soft + calm
      if soft - now > free then pressure = max(pressure, 1, (soft - now) / (free + calm)) end
      soft = math.min(soft, now + 16 * (free + calm)) -- an end to it: see doc.go
    end
    due[2 * i - 1], due[2 * i] = hard, soft
  end
  if wait > 0 then return { 'limit', by, string.format('%.0f', math.ceil(wait)) } end
  if pressure >= 1 and pressure > covers then return { 'proof', string.format('%.3f', pressure) } end
  if marked == 1 then redis.call('SET', KEYS[first], '1', 'PX', math.ceil(life / 1000)) end
  for i = 1, #held do
    local hard, soft = due[2 * i - 1], due[2 * i]
    local left = math.ceil((max(hard, soft) - now) / 1000)
    if left > 0 then redis.call('SET', KEYS[from + i - 1], struct.pack('>dd', hard, soft), 'PX', left) end
  end
  return nil
end
