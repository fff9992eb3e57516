-- A node says that it lives, and hears what it has to know. Here a Redis that lost its content is noticed, too.
local node, incarnation, description = ARGV[1], ARGV[2], ARGV[3]
local ttl, forget, joining = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local grace, copy_epoch, copy_revision = tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])

local function recover()
  redis.call('DEL', P .. 'staged')
  redis.call('HSET', P .. 'epoch', 'id', whole(fence(tonumber(copy_epoch))), 'until', whole(now + grace), 'from', '0', 'revision', '0')
end

-- The best copy of the configuration that was offered takes the place of what is there.
local function restore()
  local epoch = redis.call('HMGET', P .. 'epoch', 'from', 'revision')
  if epoch[2] ~= '0' then
    redis.call('DEL', P .. 'config', P .. 'config:log', P .. 'config:gone', P .. 'config:floor')
    local entries = redis.call('HGETALL', P .. 'staged')
    for at = 1, #entries, 2 do
      local revision = string.match(entries[at + 1], '^%d+')
      if revision then
        redis.call('HSET', P .. 'config', entries[at], entries[at + 1])
        redis.call('ZADD', P .. 'config:log', revision, entries[at])
      end
    end
    redis.call('SET', P .. 'config:revision', epoch[2])
  end
  redis.call('DEL', P .. 'staged')
  redis.call('HSET', P .. 'epoch', 'until', '0')
  tell('config')
end

local id, limit = epoch()
-- A Redis that came back with an older state knows less than a node has seen of the same epoch.
if not id or (limit == 0 and id == copy_epoch and copy_revision > stored('config:revision')) then
  recover()
  id, limit = epoch()
end
local offer = 0
if limit > 0 then
  local staged = redis.call('HMGET', P .. 'epoch', 'from', 'revision')
  local from, revision = tonumber(staged[1]), tonumber(staged[2])
  local own = tonumber(copy_epoch)
  if copy_revision > 0 and (own > from or (own == from and copy_revision > revision)) then offer = 1 end
  -- one that cannot bring its copy does not hold up the others for ever
  if now >= limit and (offer == 0 or now >= limit + grace) then
    restore()
    limit = 0
  end
end

local status = 'present'
local present = redis.call('HGET', P .. 'nodes', node)
local known, joined = string.match(present or '', '^(%S+) (%S+)')
if known ~= incarnation then
  local heard = tonumber(redis.call('ZSCORE', P .. 'nodes:heard', node) or '0')
  if present and not joining and now - heard <= ttl then
    status = 'replaced'
  else
    withdraw_node(node)
    redis.call('HDEL', P .. 'stats:seq', node)
    redis.call('HDEL', P .. 'nodes:drain', node)
    known, joined = incarnation, whole(now)
    -- whoever goes on without Redis has to ask it, too
    tell('nodes')
  end
end
if status == 'present' then
  redis.call('HSET', P .. 'nodes', node, table.concat({ incarnation, joined, description }, ' '))
  redis.call('ZADD', P .. 'nodes:heard', whole(now), node)
end

for _, lost in ipairs(redis.call('ZRANGEBYSCORE', P .. 'nodes:heard', '-inf', whole(now - ttl - 1))) do
  withdraw_node(lost)
end
for _, lost in ipairs(redis.call('ZRANGEBYSCORE', P .. 'nodes:heard', '-inf', whole(now - forget))) do
  for _, set in ipairs({ 'nodes', 'nodes:drain', 'stats:seq' }) do redis.call('HDEL', P .. set, lost) end
  redis.call('ZREM', P .. 'nodes:heard', lost)
end
withdraw_left()
for _, row in ipairs(redis.call('ZRANGEBYSCORE', P .. 'stats:orphans', '-inf', whole(now), 'LIMIT', 0, MOST_AT_ONCE)) do
  redis.call('DEL', P .. 'stats:row:' .. row)
  redis.call('ZREM', P .. 'stats:orphans', row)
end
reap_claims()

local rows = {}
local heard = redis.call('ZRANGE', P .. 'nodes:heard', 0, -1, 'WITHSCORES')
for at = 1, #heard, 2 do
  local other = heard[at]
  local row = redis.call('HGET', P .. 'nodes', other)
  local drains = redis.call('HEXISTS', P .. 'nodes:drain', other)
  rows[#rows + 1] = { other, whole(now - heard[at + 1]), drains, row }
end
return {
  status, whole(now), id, limit == 0 and 1 or 0, offer,
  whole(stored('claims:revision')), whole(stored('config:revision')), rows,
}
