-- Rows of one node: what its counters grew by since its last report, and its gauges as they are. Each report counts
-- once, however often it is sent. Rows are `{key, {growths}, {gauges}, {latest}, {totals}}`, each a list of names and
-- numbers, only of what changed; totals only in a full report, for rows whose sums were given up meanwhile. The part that a
-- full report begins with takes back what the node had before: an older state may have rows and gauges that are no more.
local node, incarnation, id = ARGV[1], ARGV[2], ARGV[3]
local sequence, full = tonumber(ARGV[4]), ARGV[5] == '1'
local ended, rows = cjson.decode(ARGV[6]), cjson.decode(ARGV[7])
-- by the wall clock: the last report before this full one
local last = tonumber(ARGV[8])
local begins = ARGV[9] == '1'

local present_id, _, run = epoch()
if present_id ~= id then return 'epoch' end
local present = redis.call('HGET', P .. 'nodes', node)
if not present or string.match(present, '^(%S+)') ~= incarnation then return 'unknown' end
-- another run of the server may lack the last reports
run = run or ''
if not full and redis.call('HGET', P .. 'stats:shown', node) ~= run then return 'full' end
local counted = tonumber(redis.call('HGET', P .. 'stats:seq', node) or '0') >= sequence
if begins then put_off('stats:left', node, P .. 'stats:of:' .. node) end

-- Makes the row one of this node's. Returns whether its sums have what this life of the node counted before.
local function join(name, key)
  -- its gauges of before it was lost are in the sums yet
  if redis.call('SREM', P .. 'stats:left:' .. node, name) == 1 then withdraw_row(node, name) end
  local life, born, nodes = unpack(redis.call('HMGET', key, 'i:' .. node, 'born', 'nodes'))
  born = born or whole(wall)
  local fields = { 'i:' .. node, incarnation, 'born', born }
  if redis.call('SADD', P .. 'stats:of:' .. node, name) == 1 then
    fields[5], fields[6], fields[7], fields[8] = 'o:' .. node, '', 'nodes', whole((nodes or 0) + 1)
    redis.call('ZREM', P .. 'stats:orphans', name)
  end
  redis.call('HSET', key, unpack(fields))
  if life == incarnation then return true end
  redis.call('SADD', P .. 'stats:counted:' .. node, name)
  -- its traces may have been removed in between
  return tonumber(born) <= last
end

-- Names of fields, each made once: thousands of rows have the same ones.
local function named(prefix)
  local function name(names, of)
    names[of] = prefix .. of
    return names[of]
  end
  return setmetatable({}, { __index = name })
end
local counted_as, latest_as, own_as = named('c:'), named('l:'), named('g:' .. node .. ':')
local sum_as, most_as, since_as = named('s:'), named('m:'), named('t:')

local function put(changes, field, value)
  local from = #changes
  changes[from + 1], changes[from + 2] = field, value
end

-- Numbers come as text and stay as they are where nothing is added: to write one out takes as long as a field of HSET.
local function text(number)
  return string.format('%.17g', number)
end

for _, row in ipairs(rows) do
  local name, gauges, latest, totals = row[1], row[3], row[4], row[5]
  local key = P .. 'stats:row:' .. name
  local counters = row[2]
  if #totals > 0 and not join(name, key) then counters = totals end
  if counted then counters = {} end

  -- one command reads what the row has of these, one writes it: there are thousands of rows
  local asked, changes = {}, {}
  for at = 1, #counters, 2 do asked[#asked + 1] = counted_as[counters[at]] end
  for at = 1, #latest, 2 do asked[#asked + 1] = latest_as[latest[at]] end
  for at = 1, #gauges, 2 do
    local from, gauge = #asked, gauges[at]
    asked[from + 1], asked[from + 2], asked[from + 3] = own_as[gauge], sum_as[gauge], most_as[gauge]
  end
  local known = #asked > 0 and redis.call('HMGET', key, unpack(asked)) or {}
  local from = 0
  for at = 1, #counters, 2 do
    from = from + 1
    put(changes, asked[from], text((known[from] or 0) + counters[at + 1]))
  end
  for at = 1, #latest, 2 do
    from = from + 1
    if tonumber(known[from] or '-inf') < tonumber(latest[at + 1]) then put(changes, asked[from], latest[at + 1]) end
  end
  for at = 1, #gauges, 2 do
    local value, before, sum = gauges[at + 1], known[from + 1], known[from + 2]
    -- what no other node adds to is the sum
    sum = sum == before and value or text((sum or 0) + value - (before or 0))
    put(changes, asked[from + 1], value)
    put(changes, asked[from + 2], sum)
    if tonumber(sum) > tonumber(known[from + 3] or '-inf') then
      put(changes, asked[from + 3], sum)
      put(changes, since_as[gauges[at]], whole(wall))
    end
    from = from + 3
  end
  if #changes > 0 then redis.call('HSET', key, unpack(changes)) end
end
for _, name in ipairs(ended) do
  if redis.call('SISMEMBER', P .. 'stats:of:' .. node, name) == 1 then withdraw_row(node, name) end
end
redis.call('HSET', P .. 'stats:seq', node, whole(sequence))
redis.call('HSET', P .. 'stats:shown', node, run)
return 'counted ' .. whole(wall)
