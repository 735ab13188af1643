-- share: who is next, of two lines. Part of call.lua, after memory.lua.

-- The next places, at most `most`, as {member, score, …} in the order in which they
-- are called. Who came by an invite ahead of the line is first. After them, while
-- somebody waits in both lines, of n calls n × share / 100 are of the priority line,
-- rounded down: what the rounding left over stays in the state for the next step.
-- A line in which nobody waits leaves its calls to the other, and is owed nothing for it.
-- Returns also how many of each line there are.
local function nextOf(most, share)
  local plain = redis.call('ZRANGE', k_wait, 0, most - 1, 'WITHSCORES')
  local prior = redis.call('ZRANGE', k_priority, 0, most - 1, 'WITHSCORES')
  if #prior == 0 then return plain, #plain / 2, 0 end
  local before = num(k_state, 'pcredit')
  local credit, picked, i, j = before, {}, 1, 1
  while #picked < 2 * most and (plain[i] or prior[j]) do
    local from, at = plain, i
    if not plain[i] then
      from, at = prior, j
    elseif prior[j] and tonumber(plain[i + 1]) >= 0 then
      credit = credit + share
      if credit >= 100 then credit, from, at = credit - 100, prior, j end
    end
    picked[#picked + 1], picked[#picked + 2] = from[at], from[at + 1]
    if from == plain then i = i + 2 else j = j + 2 end
  end
  if credit ~= before then redis.call('HSET', k_state, 'pcredit', f(credit)) end
  return picked, (i - 1) / 2, (j - 1) / 2
end

-- Where a place of the priority line stands among those who stand by: behind all who
-- were called before it, and before all of the line who are called after it. Those of
-- the line stand there by their score, so this is one, too: a moment above the watermark.
local function turns()
  local turn = num(k_state, 'pturn')
  return function(member, mark)
    turn = math.max(turn, tonumber(mark)) + 1
    redis.call('HSET', k_turns, member, f(turn))
    redis.call('HSET', k_state, 'pturn', f(turn))
  end
end
