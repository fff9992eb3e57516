-- Stands before every script. KEYS[1] is the prefix of all keys, hash tag included: whatever a script touches is in
-- one slot.
local P = KEYS[1]

-- How far time goes on between two scripts at most: nodes beat more often. What is more is a clock that was set, another
-- machine's clock after a failover, or a time when nobody could renew anything.
local LONGEST_GAP_MS = 2000
-- Scripts that come soon after another reckon from the same moment.
local CLOCK_STEP_MS = 200

-- Time is Redis' own, in milliseconds: the clocks of the nodes do not matter. `now` goes on as its clock does, but does
-- not jump with it: a lease ends for others never before it does for its holder.
local clock = redis.call('TIME')
local wall = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reckoned = redis.call('HMGET', P .. 'clock', 'wall', 'now')
local passed = wall - tonumber(reckoned[1] or wall)
local now = tonumber(reckoned[2] or wall) + math.max(0, math.min(passed, LONGEST_GAP_MS))
if not reckoned[1] or passed < 0 or passed > CLOCK_STEP_MS then
  redis.call('HSET', P .. 'clock', 'wall', string.format('%.0f', wall), 'now', string.format('%.0f', now))
end

-- Removed keys that are remembered for nodes that catch up; one that is further behind reads everything.
local REMEMBERED = 2000
-- How long the sums of a row stay that no node has any more.
local ORPHAN_MS = 30000
-- Of what a dead node left, so much is done in one step: others wait for Redis meanwhile.
local MOST_AT_ONCE = 300

local function whole(number)
  return string.format('%.0f', number)
end

local function stored(key)
  return tonumber(redis.call('GET', P .. key) or '0')
end

-- The next fence: grows across an emptied Redis, too, by its clock and by what the asking node has seen.
local function fence(floor)
  local next = math.max(stored('fence') + 1, wall, floor + 1)
  redis.call('SET', P .. 'fence', whole(next))
  return next
end

-- Id of the epoch, false in an empty Redis, and until when only previous holders may claim; 0 when all may.
local function epoch()
  local values = redis.call('HMGET', P .. 'epoch', 'id', 'until')
  return values[1], tonumber(values[2] or '0')
end

local function is_open()
  local id, limit = epoch()
  return id and limit == 0
end

-- One command for many arguments, as far as Lua takes them at once.
local function in_parts(command, key, arguments)
  for at = 1, #arguments, 1000 do
    redis.call(command, key, unpack(arguments, at, math.min(at + 999, #arguments)))
  end
end

-- Notes a change of keys of `claims` or `config`, so that whoever knows an older revision finds it.
local function mark(set, keys, revision, present)
  local gone = P .. set .. ':gone'
  local scored = {}
  for at, key in ipairs(keys) do scored[2 * at - 1], scored[2 * at] = whole(revision), key end
  in_parts('ZADD', P .. set .. ':log', scored)
  if present then return in_parts('ZREM', gone, keys) end
  in_parts('ZADD', gone, scored)
  local excess = redis.call('ZCARD', gone) - REMEMBERED
  if excess <= 0 then return end
  local oldest, forgotten = redis.call('ZPOPMIN', gone, excess), {}
  for at = 1, #oldest, 2 do forgotten[#forgotten + 1] = oldest[at] end
  in_parts('ZREM', P .. set .. ':log', forgotten)
  redis.call('SET', P .. set .. ':floor', oldest[#oldest])
end

-- Whatever a script does, once is enough: who hears it looks when the script is over.
local told = {}
local function tell(what)
  if not told[what] then redis.call('PUBLISH', P .. 'events', what) end
  told[what] = true
end

-- Claims: `fence token node incarnation keep meta` by key. What has expired is there for nobody.

local function claimed(key)
  local expiry = tonumber(redis.call('ZSCORE', P .. 'claims:expiry', key) or '0')
  return expiry > now and redis.call('HGET', P .. 'claims', key)
end

local function token_of(record)
  return string.match(record, '^%S+ (%S+)')
end

local function put_claim(key, record, ttl)
  redis.call('HSET', P .. 'claims', key, record)
  redis.call('ZADD', P .. 'claims:expiry', whole(now + ttl), key)
  mark('claims', { key }, redis.call('INCR', P .. 'claims:revision'), true)
  tell('claims')
end

local function drop_claim(key)
  redis.call('HDEL', P .. 'claims', key)
  redis.call('ZREM', P .. 'claims:expiry', key)
  mark('claims', { key }, redis.call('INCR', P .. 'claims:revision'), false)
  tell('claims')
end

local function reap_claims()
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. 'claims:expiry', '-inf', whole(now), 'LIMIT', 0, MOST_AT_ONCE)) do
    drop_claim(key)
  end
end

-- How long what a claim keeps outlasts it.
local function keep_of(record)
  return tonumber(string.match(record, '^%S+ %S+ %S+ %S+ (%S+)') or '0')
end

-- What is kept for the next holder of a key stays at least as long as from now.
local function hold_kept(key, keep, ttl)
  if keep > 0 then redis.call('PEXPIRE', P .. 'kept:' .. key, whole(keep + ttl)) end
end

-- Statistics: a hash for each row; `c:name` totals, `l:name` latest, `g:node:name` gauges, `s:name` their sums, `m:name`
-- the greatest of those and `t:name` since when, `i:node` the incarnation of a node that counts in the totals,
-- `nodes` how many nodes have the row. `stats:of:node` has the rows of a node.

local function withdraw_row(node, row)
  local key = P .. 'stats:row:' .. row
  local own = 'g:' .. node .. ':'
  local fields, values = redis.call('HGETALL', key), {}
  for at = 1, #fields, 2 do values[fields[at]] = fields[at + 1] end
  local gone, left = {}, {}
  for field, value in pairs(values) do
    if string.sub(field, 1, #own) == own then
      local sum = 's:' .. string.sub(field, #own + 1)
      gone[#gone + 1] = field
      left[#left + 1] = sum
      left[#left + 1] = string.format('%.17g', (values[sum] or 0) - value)
    end
  end
  in_parts('HDEL', key, gone)
  in_parts('HSET', key, left)
  redis.call('SREM', P .. 'stats:of:' .. node, row)
  if redis.call('HINCRBY', key, 'nodes', -1) <= 0 then
    redis.call('ZADD', P .. 'stats:orphans', whole(now + ORPHAN_MS), row)
  end
end

-- Some of the rows that nodes left: `stats:left` names those nodes, `stats:left:node` their rows.
local function withdraw_left()
  local rest = MOST_AT_ONCE
  for _, node in ipairs(redis.call('SMEMBERS', P .. 'stats:left')) do
    local rows = rest > 0 and redis.call('SPOP', P .. 'stats:left:' .. node, rest) or {}
    for _, row in ipairs(rows) do withdraw_row(node, row) end
    rest = rest - #rows
    if rest > 0 then redis.call('SREM', P .. 'stats:left', node) end
  end
end

-- Gauges of a node that is gone leave the sums, soon; its counters are in the totals.
local function withdraw_node(node)
  local rows, left = P .. 'stats:of:' .. node, P .. 'stats:left:' .. node
  if redis.call('EXISTS', rows) == 1 then
    redis.call('SUNIONSTORE', left, left, rows)
    redis.call('DEL', rows)
    redis.call('SADD', P .. 'stats:left', node)
  end
  redis.call('HDEL', P .. 'stats:shown', node)
end
