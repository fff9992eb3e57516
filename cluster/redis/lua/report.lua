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

if epoch() ~= id then return 'epoch' end
local present = redis.call('HGET', P .. 'nodes', node)
if not present or string.match(present, '^(%S+)') ~= incarnation then return 'unknown' end
-- another run of the server may lack the last reports
local run = redis.call('HGET', P .. 'epoch', 'run') or ''
if not full and redis.call('HGET', P .. 'stats:shown', node) ~= run then return 'full' end
local counted = tonumber(redis.call('HGET', P .. 'stats:seq', node) or '0') >= sequence
if begins then put_off('stats:left', node, P .. 'stats:of:' .. node) end

-- Makes the row one of this node's. Returns whether its sums have what this life of the node counted before.
local function join(name, key)
  -- its gauges of before it was lost are in the sums yet
  if redis.call('SREM', P .. 'stats:left:' .. node, name) == 1 then withdraw_row(node, name) end
  if redis.call('SADD', P .. 'stats:of:' .. node, name) == 1 then
    redis.call('HINCRBY', key, 'nodes', 1)
    redis.call('HSET', key, 'o:' .. node, '')
    redis.call('ZREM', P .. 'stats:orphans', name)
  end
  redis.call('HSETNX', key, 'born', whole(wall))
  if redis.call('HGET', key, 'i:' .. node) == incarnation then return true end
  redis.call('HSET', key, 'i:' .. node, incarnation)
  redis.call('SADD', P .. 'stats:counted:' .. node, name)
  -- its traces may have been removed in between
  return tonumber(redis.call('HGET', key, 'born')) <= last
end

local own = 'g:' .. node .. ':'

local function put(changes, field, value)
  local from = #changes
  changes[from + 1], changes[from + 2] = field, string.format('%.17g', value)
end

for _, row in ipairs(rows) do
  local name, gauges, latest, totals = row[1], row[3], row[4], row[5]
  local key = P .. 'stats:row:' .. name
  local counters = row[2]
  if #totals > 0 and not join(name, key) then counters = totals end
  if counted then counters = {} end

  -- one command reads what the row has of these, one writes it: there are thousands of rows
  local asked, changes = {}, {}
  for at = 1, #counters, 2 do asked[#asked + 1] = 'c:' .. counters[at] end
  for at = 1, #latest, 2 do asked[#asked + 1] = 'l:' .. latest[at] end
  for at = 1, #gauges, 2 do
    local from, gauge = #asked, gauges[at]
    asked[from + 1], asked[from + 2], asked[from + 3] = own .. gauge, 's:' .. gauge, 'm:' .. gauge
  end
  local known = #asked > 0 and redis.call('HMGET', key, unpack(asked)) or {}
  local from = 0
  for at = 1, #counters, 2 do
    from = from + 1
    put(changes, asked[from], (known[from] or 0) + counters[at + 1])
  end
  for at = 1, #latest, 2 do
    from = from + 1
    if tonumber(known[from] or '-inf') < tonumber(latest[at + 1]) then put(changes, asked[from], latest[at + 1]) end
  end
  for at = 1, #gauges, 2 do
    local value = tonumber(gauges[at + 1])
    local sum = (known[from + 2] or 0) + value - (known[from + 1] or 0)
    put(changes, asked[from + 1], value)
    put(changes, asked[from + 2], sum)
    if sum > tonumber(known[from + 3] or '-inf') then
      put(changes, asked[from + 3], sum)
      put(changes, 't:' .. gauges[at], wall)
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
