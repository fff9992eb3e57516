-- Rows of one node: what its counters grew by since its last report, and its gauges as they are. Each report counts
-- once, however often it is sent. Rows are `{key, {counters}, {gauges}, {latest}}`, each a list of names and numbers,
-- only of what changed.
local node, incarnation, id = ARGV[1], ARGV[2], ARGV[3]
local sequence, full = tonumber(ARGV[4]), ARGV[5] == '1'
local ended, rows = cjson.decode(ARGV[6]), cjson.decode(ARGV[7])

if epoch() ~= id then return 'epoch' end
local present = redis.call('HGET', P .. 'nodes', node)
if not present or string.match(present, '^(%S+)') ~= incarnation then return 'unknown' end
if not full and redis.call('HEXISTS', P .. 'stats:shown', node) == 0 then return 'full' end
local counted = tonumber(redis.call('HGET', P .. 'stats:seq', node) or '0') >= sequence

local function each(list, fn)
  for at = 1, #list, 2 do fn(list[at], list[at + 1]) end
end

-- The greatest sums that there were.
local function keep_maxima(key)
  local sums, maxima = {}, {}
  each(redis.call('HGETALL', key), function(field, value)
    local gauge = string.match(field, '^g:[^:]*:(.*)$')
    if gauge then sums[gauge] = (sums[gauge] or 0) + tonumber(value) end
    if string.sub(field, 1, 2) == 'm:' then maxima[string.sub(field, 3)] = tonumber(value) end
  end)
  for gauge, sum in pairs(sums) do
    if sum > (maxima[gauge] or -math.huge) then redis.call('HSET', key, 'm:' .. gauge, string.format('%.17g', sum)) end
  end
end

for _, row in ipairs(rows) do
  local name, key = row[1], P .. 'stats:row:' .. row[1]
  if redis.call('SADD', P .. 'stats:of:' .. node, name) == 1 then
    redis.call('HINCRBY', key, 'nodes', 1)
    redis.call('ZREM', P .. 'stats:orphans', name)
  end
  if not counted then
    each(row[2], function(counter, growth) redis.call('HINCRBY', key, 'c:' .. counter, growth) end)
  end
  each(row[3], function(gauge, value) redis.call('HSET', key, 'g:' .. node .. ':' .. gauge, value) end)
  each(row[4], function(event, time)
    if tonumber(redis.call('HGET', key, 'l:' .. event) or '-inf') < tonumber(time) then
      redis.call('HSET', key, 'l:' .. event, time)
    end
  end)
  if #row[3] > 0 then keep_maxima(key) end
end
for _, name in ipairs(ended) do
  if redis.call('SISMEMBER', P .. 'stats:of:' .. node, name) == 1 then withdraw_row(node, name) end
end
redis.call('HSET', P .. 'stats:seq', node, whole(sequence))
redis.call('HSET', P .. 'stats:shown', node, '1')
return 'counted'
