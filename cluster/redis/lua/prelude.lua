-- Stands before every script. KEYS[1] is the prefix of all keys, hash tag included: whatever a script touches is in
-- one slot.
local P = KEYS[1]

-- How far time goes on between two scripts at most: nodes beat more often, and no lease lasts for less. What is more is a
-- clock that was set, another machine's clock after a failover, or a time when nobody could renew anything.
local LONGEST_GAP_MS = 1000
-- Scripts that come soon after another reckon from the same moment.
local CLOCK_STEP_MS = 200

-- Time is Redis' own, in milliseconds: the clocks of the nodes do not matter. `now` goes on as its clock does, but does
-- not jump with it: a lease ends for others never before it does for its holder.
local clock = redis.call('TIME')
local wall = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reckoned = redis.call('HMGET', P .. 'clock', 'wall', 'now')
local passed = wall - tonumber(reckoned[1] or wall)
-- a clock that was lost goes on from the last beat
local since = reckoned[2] or redis.call('ZREVRANGE', P .. 'nodes:heard', 0, 0, 'WITHSCORES')[2] or wall
local now = tonumber(since) + math.max(0, math.min(passed, LONGEST_GAP_MS))
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

-- Id of the epoch, false in an empty Redis; until when only previous holders may claim, 0 when all may; the run of the server;
-- and the epoch of the configuration. The last revisions of an earlier one of that may be lost and have been given anew, those
-- of one epoch mean one thing: `config` has it, the epoch that it continues, and up to which revision. One that an earlier
-- version has opened goes by the id.
local function epoch()
  local values = redis.call('HMGET', P .. 'epoch', 'id', 'until', 'run', 'config')
  return values[1], tonumber(values[2] or '0'), values[3], string.match(values[4] or '', '^%d+') or values[1]
end

local function config_epoch()
  return (select(4, epoch()))
end

-- A section of what the server says about itself; empty where the user may not ask for it.
local function server_info(section)
  local info = redis.pcall('INFO', section)
  return type(info) == 'string' and info or ''
end

-- Names this run of the server, and its history: a master that has followed another for a moment has lost what that one does
-- not have, and goes by another replication id. Empty where the server does not say.
local run_name
local function server_run()
  if run_name then return run_name end
  local run = string.match(server_info('server'), 'run_id:(%x+)')
  local history = string.match(server_info('replication'), 'master_replid:(%x+)')
  run_name = run and history and run .. '.' .. history or run or ''
  return run_name
end

-- What is lost for everybody when Redis loses one of these keys. Each has an entry with the id of the epoch, which
-- changes with nothing: where that is not there, the set has been evicted or deleted.
local GUARDED = {
  hashes = { 'claims', 'claims:lost', 'config', 'nodes' },
  scored = { ['claims:of'] = '0', ['claims:log'] = '-inf', ['config:log'] = '-inf', ['nodes:gone'] = '+inf' },
}
local function sentinel(id)
  return '~' .. id
end
local function guard_sets(id)
  for _, set in ipairs(GUARDED.hashes) do redis.call('HSET', P .. set, sentinel(id), '') end
  for set, score in pairs(GUARDED.scored) do redis.call('ZADD', P .. set, score, sentinel(id)) end
end
local function has_config(id)
  return redis.call('HEXISTS', P .. 'config', sentinel(id)) == 1 and redis.call('ZSCORE', P .. 'config:log', sentinel(id))
end
local function has_sets(id)
  for _, set in ipairs(GUARDED.hashes) do
    if redis.call('HEXISTS', P .. set, sentinel(id)) == 0 then return false end
  end
  for set in pairs(GUARDED.scored) do
    if not redis.call('ZSCORE', P .. set, sentinel(id)) then return false end
  end
  -- single entries may be lost, too: every node has been heard, every claim is found by its holder
  return redis.call('HLEN', P .. 'nodes') == redis.call('ZCARD', P .. 'nodes:heard') + 1
    and redis.call('HLEN', P .. 'claims') == redis.call('ZCARD', P .. 'claims:of')
end

-- How far the nodes are that may have claims in a Redis that has lost some: 0, 1 or 2, the least of all; 0 as long as
-- nobody has said which nodes there are.
local function least_reported()
  local least = redis.call('HEXISTS', P .. 'epoch', 'known') == 1 and 2 or 0
  for _, state in ipairs(redis.call('HVALS', P .. 'epoch:nodes')) do least = math.min(least, tonumber(state)) end
  return least
end

-- Whether nothing is lost that a beat is yet to notice: the state is not older than the highest fence that the asking node
-- knows of, all sets are there, and the nodes have reported to this run of the server.
local function is_sound(id, highest)
  return highest <= stored('fence') and has_sets(id) and redis.call('HGET', P .. 'epoch', 'run') == server_run()
end

-- Whether everybody may claim and write.
local function is_open(highest)
  local id, limit = epoch()
  return id and limit == 0 and is_sound(id, highest)
end

-- One command for many arguments, as far as Lua takes them at once.
local function in_parts(command, key, arguments)
  for at = 1, #arguments, 1000 do
    redis.call(command, key, unpack(arguments, at, math.min(at + 999, #arguments)))
  end
end

-- What a hash has of many fields, false for each that is not there.
local function values_of(set, fields)
  local values = {}
  for at = 1, #fields, 1000 do
    local part = redis.call('HMGET', P .. set, unpack(fields, at, math.min(at + 999, #fields)))
    for index = 1, #part do values[at + index - 1] = part[index] end
  end
  return values
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

-- Claims: `fence token node incarnation silence keep meta` by key. They last as long as the lease of their node, which each
-- beat renews. Those with the silence `stop` end with it, as they do for their holder; others last until it is known what
-- became of the node: `nodes:fate` has `gone` for one whose process has died, and `cut time` for one that said over its
-- cluster port that it lives and has no Redis, until when that counts. `claims:of` finds claims by `incarnation silence key`.
-- `nodes:gone` has lives that are over, as `incarnation`, or `incarnation stop` for claims that end with the lease, with the
-- time when they end; `claims:lost` the number of the last claim that a life lost without giving it up; `claims:taken` keys
-- that were taken from a holder, with the time until when that one may go on.

-- What is kept for the next holder outlasts the claim; of one that was lost with its Redis it stays so long.
local KEPT_MS = 86400000

local function token_of(record)
  return string.match(record, '^%S+ (%S+)')
end

local function holder_of(record)
  return string.match(record, '^%S+ %S+ (%S+) (%S+) (%S+)')
end

-- How long what a claim keeps outlasts it.
local function keep_of(record)
  return tonumber(string.match(record, '^%S+ %S+ %S+ %S+ %S+ (%S+)') or '0')
end

-- The run of a node that has the row.
local function incarnation_of(node)
  return string.match(redis.call('HGET', P .. 'nodes', node) or '', '^%S+')
end

-- What an entry of `nodes:fate` means by now; nil when it says nothing.
local function fate_in(entry)
  local fate, till = string.match(entry, '^(%S+) ?(%d*)')
  if fate == 'cut' and tonumber(till) <= now then return nil end
  return fate
end

-- What became of a node that is not heard of; nil when it is not known.
local function fate_of(node)
  return fate_in(redis.call('HGET', P .. 'nodes:fate', node) or '')
end

-- When a node was heard of last; 0 for one that never was.
local function heard_at(node)
  return tonumber(redis.call('ZSCORE', P .. 'nodes:heard', node) or '0')
end

-- Until when it counts that a node which is not heard of has said that it lives; 0 when it has not.
local function cut_until(node)
  return tonumber(string.match(redis.call('HGET', P .. 'nodes:fate', node) or '', '^cut (%d+)') or '0')
end

-- Until when claims of a life of a node last; 0 when that is over.
local function lease_end(node, incarnation, silence, ttl)
  local over = redis.call('ZSCORE', P .. 'nodes:gone', incarnation)
  if over then return tonumber(over) end
  if incarnation_of(node) ~= incarnation then return 0 end
  local _, limit = epoch()
  -- nodes that are yet to find a Redis that was away have not died
  if limit > 0 then return math.huge end
  local last = heard_at(node) + ttl
  if last > now then return last end
  return (silence == 'stop' or fate_of(node) == 'gone') and 0 or math.huge
end

-- Until when who had the key before may act on it; 0 when nobody may.
local function taken_until(key)
  local till = tonumber(redis.call('ZSCORE', P .. 'claims:taken', key) or '0')
  return till > now and till or 0
end

-- The claim of a key, if anybody may still act on it, and until when.
local function claimed(key, ttl)
  local record = redis.call('HGET', P .. 'claims', key)
  if not record then return false end
  local node, incarnation, silence = holder_of(record)
  local last = node and lease_end(node, incarnation, silence, ttl) or math.huge
  last = math.max(last, taken_until(key))
  return last > now and record, last
end

local function note_loss(record)
  local node, incarnation = holder_of(record)
  if node and incarnation_of(node) == incarnation then
    redis.call('HSET', P .. 'claims:lost', incarnation, whole(fence(0)))
  end
end

-- Where `claims:of` has a claim.
local function index_of(key, record)
  local _, incarnation, silence = holder_of(record)
  return table.concat({ incarnation or '', silence or '', key }, ' ')
end

-- The number of a change of claims: by the clock, so that none is given again after Redis has lost the last of them. Returns
-- the one before, too.
local function next_claims_revision()
  local before = stored('claims:revision')
  local revision = math.max(before + 1, wall)
  redis.call('SET', P .. 'claims:revision', whole(revision))
  return revision, before
end

-- The message of a change has the claim itself, '' for one that is gone: who knows everything before it need not ask. Further
-- changes of the same step are not in the message after it, which only makes everybody ask.
local claims_told = false
local function note_claims(key, record)
  local revision, before = next_claims_revision()
  mark('claims', { key }, revision, record ~= '')
  if claims_told then return tell('claims') end
  claims_told = true
  tell(table.concat({ 'claim', whole(before), whole(revision), record .. '\n' .. key }, ' '))
end

local function put_claim(key, record)
  local former = redis.call('HGET', P .. 'claims', key)
  if former and token_of(former) ~= token_of(record) then note_loss(former) end
  if former then redis.call('ZREM', P .. 'claims:of', index_of(key, former)) end
  redis.call('HSET', P .. 'claims', key, record)
  redis.call('ZADD', P .. 'claims:of', '0', index_of(key, record))
  note_claims(key, record)
end

local function drop_claim(key, record)
  redis.call('HDEL', P .. 'claims', key)
  redis.call('ZREM', P .. 'claims:of', index_of(key, record))
  local keep = keep_of(record)
  if keep > 0 then redis.call('PEXPIRE', P .. 'kept:' .. key, whole(keep)) end
  note_claims(key, '')
end

-- A life of a node is over, or will be at a given time unless it is heard of again.
local function end_life(incarnation, at)
  redis.call('ZADD', P .. 'nodes:gone', 'NX', whole(at), incarnation)
end

-- The lease of a node has ended, and with it what may run only once.
local function end_lease(incarnation)
  end_life(incarnation .. ' stop', now)
end

-- The process of a node has died.
local function judge_gone(node)
  redis.call('HSET', P .. 'nodes:fate', node, 'gone')
  end_life(incarnation_of(node) or '', now)
end

-- A node lives, and will not be heard of for a while.
local function judge_cut(node, till)
  redis.call('HSET', P .. 'nodes:fate', node, 'cut ' .. whole(till))
end

-- It was heard of, so nothing is judged any more.
local function acquit(node, incarnation)
  redis.call('HDEL', P .. 'nodes:fate', node)
  redis.call('ZREM', P .. 'nodes:gone', incarnation, incarnation .. ' stop')
end

-- Drops some of the claims that are over, at most so many. Returns how many there were left.
local function reap_life(life, most)
  local found = redis.call('ZRANGEBYLEX', P .. 'claims:of', '[' .. life .. ' ', '(' .. life .. '!', 'LIMIT', 0, most)
  for _, member in ipairs(found) do
    local key = string.match(member, '^%S+ %S+ (.*)')
    local record = redis.call('HGET', P .. 'claims', key)
    if not record or index_of(key, record) ~= member then
      redis.call('ZREM', P .. 'claims:of', member)
    elseif taken_until(key) == 0 then
      note_loss(record)
      drop_claim(key, record)
    end
  end
  return #found
end

-- Drops some claims of lives that are over. Whoever hears of it reads what has changed, and drops more.
local function reap_claims()
  redis.call('ZREMRANGEBYSCORE', P .. 'claims:taken', '-inf', whole(now))
  local rest = MOST_AT_ONCE
  for _, life in ipairs(redis.call('ZRANGEBYSCORE', P .. 'nodes:gone', '-inf', whole(now))) do
    local found = rest > 0 and reap_life(life, rest) or 1
    rest = rest - found
    if found == 0 then redis.call('ZREM', P .. 'nodes:gone', life) end
  end
end

-- Statistics: a hash for each row; `c:name` totals, `l:name` latest, `g:node:name` gauges, `s:name` their sums, `m:name`
-- the greatest of those and `t:name` since when, `i:node` the incarnation of a node that counts in the totals,
-- `o:node` for a node that has the row, `nodes` how many have it, `born` since when there is one. `stats:of:node` has the rows
-- of a node, `stats:counted:node` those with its `i:`.

local function withdraw_row(node, row)
  local key = P .. 'stats:row:' .. row
  local own = 'g:' .. node .. ':'
  local fields, values = redis.call('HGETALL', key), {}
  for at = 1, #fields, 2 do values[fields[at]] = fields[at + 1] end
  local nodes = (values.nodes or 0) - 1
  local gone, left = { 'o:' .. node }, { 'nodes', whole(nodes) }
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
  if nodes <= 0 then
    redis.call('ZADD', P .. 'stats:orphans', whole(now + ORPHAN_MS), row)
  end
end

-- What a life of a node that is over has counted in a row is in the totals.
local function forget_row(node, row)
  local key, field = P .. 'stats:row:' .. row, 'i:' .. node
  if redis.call('HGET', key, field) ~= incarnation_of(node) then redis.call('HDEL', key, field) end
end

-- What is to be done with many rows of a node is done in steps: `list` names the nodes, `list:node` has its rows.
local function put_off(list, node, rows)
  if redis.call('EXISTS', rows) == 0 then return end
  local left = P .. list .. ':' .. node
  redis.call('SUNIONSTORE', left, left, rows)
  redis.call('DEL', rows)
  redis.call('SADD', P .. list, node)
end
local function some_of(list, take)
  local rest = MOST_AT_ONCE
  for _, node in ipairs(redis.call('SMEMBERS', P .. list)) do
    local rows = rest > 0 and redis.call('SPOP', P .. list .. ':' .. node, rest) or {}
    for _, row in ipairs(rows) do take(node, row) end
    rest = rest - #rows
    if rest > 0 then redis.call('SREM', P .. list, node) end
  end
end

-- Gauges of a node that is gone leave the sums, soon; its counters are in the totals.
local function withdraw_node(node)
  put_off('stats:left', node, P .. 'stats:of:' .. node)
  redis.call('HDEL', P .. 'stats:shown', node)
end

-- Nothing names a node any more that is gone for good.
local function forget_node(node)
  withdraw_node(node)
  redis.call('HDEL', P .. 'claims:lost', incarnation_of(node) or '')
  put_off('stats:gone', node, P .. 'stats:counted:' .. node)
  for _, set in ipairs({ 'nodes', 'nodes:drain', 'nodes:seen', 'nodes:buried', 'nodes:fate', 'stats:seq', 'epoch:nodes' }) do
    redis.call('HDEL', P .. set, node)
  end
  redis.call('ZREM', P .. 'nodes:heard', node)
end

local function tidy_rows()
  some_of('stats:left', withdraw_row)
  some_of('stats:gone', forget_row)
  for _, row in ipairs(redis.call('ZRANGEBYSCORE', P .. 'stats:orphans', '-inf', whole(now), 'LIMIT', 0, MOST_AT_ONCE)) do
    for _, field in ipairs(redis.call('HKEYS', P .. 'stats:row:' .. row)) do
      local node = string.match(field, '^i:(.*)')
      if node then redis.call('SREM', P .. 'stats:counted:' .. node, row) end
    end
    redis.call('DEL', P .. 'stats:row:' .. row)
    redis.call('ZREM', P .. 'stats:orphans', row)
  end
end
