-- Stands before the script of the beat: how a Redis that has lost something gets it back. `epoch` has its id, until when
-- only previous holders may claim, which copy of the configuration is the best so far (`from`, `revision`; `offered` when
-- it is in `staged`), the run of the server and the id of the recovery itself. `epoch:nodes` has the nodes that may have
-- claims: '0' nothing is known of it, '1' it has made its valid claims again, '2' those that were cut off, too. `known` says
-- that no others may have any.

-- A Redis that has been up for so long has been found by every node that has anything in it.
local FOUND_S = 3

-- Fences stay as they are: by them those who have later ones find that the state is an older one.
local function begin_recovery(id, limit)
  local run = server_run()
  redis.call('DEL', P .. 'epoch:nodes')
  redis.call('HSET', P .. 'epoch:nodes', sentinel(id), '2')
  redis.call('HDEL', P .. 'epoch', 'known', 'new')
  redis.call('HSET', P .. 'epoch', 'until', whole(limit), 'run', run, 'recovery', table.concat({ id, whole(wall), run }, ':'))
end

-- Whether what a recovery needs is there.
local function has_recovery(id)
  if redis.call('HEXISTS', P .. 'epoch:nodes', sentinel(id)) == 0 then return false end
  return redis.call('HEXISTS', P .. 'epoch', 'offered') == 0 or redis.call('HEXISTS', P .. 'staged', sentinel(id)) == 1
end

-- What is offered has to be better than this copy of the configuration.
local function ask_for_copies(from, revision)
  redis.call('DEL', P .. 'staged')
  redis.call('HDEL', P .. 'epoch', 'offered')
  redis.call('HSET', P .. 'epoch', 'from', from, 'revision', whole(revision))
end

-- Of nodes and the times of their last beats some may be lost: what is left of them is made to fit.
local function match_nodes(ttl)
  local rows = redis.call('HGETALL', P .. 'nodes')
  for at = 1, #rows, 2 do
    -- a sentinel, of whichever epoch
    if rows[at + 1] == '' then redis.call('HDEL', P .. 'nodes', rows[at]) end
  end
  for _, node in ipairs(redis.call('ZRANGE', P .. 'nodes:heard', 0, -1)) do
    if redis.call('HEXISTS', P .. 'nodes', node) == 0 then redis.call('ZREM', P .. 'nodes:heard', node) end
  end
  for _, node in ipairs(redis.call('HKEYS', P .. 'nodes')) do
    -- one that has died is not heard of
    redis.call('ZADD', P .. 'nodes:heard', 'NX', whole(fate_of(node) == 'gone' and now - ttl - 1 or now), node)
  end
end

-- Nothing is left of claims: those of an older state would be taken for present ones. The new epoch is later than
-- everything that the node knows.
local function start_anew(limit, floor, ttl)
  local former, was_restored = epoch()
  match_nodes(ttl)
  for _, set in ipairs({ 'claims', 'claims:of', 'claims:lost', 'claims:log', 'claims:gone', 'claims:floor', 'nodes:gone', 'nodes:fate' }) do
    redis.call('DEL', P .. set)
  end
  local id = whole(fence(floor))
  if former and was_restored == 0 and has_config(former) then
    ask_for_copies(config_epoch(), stored('config:revision'))
  else
    ask_for_copies('0', 0)
  end
  if former then
    redis.call('HDEL', P .. 'config', sentinel(former))
    redis.call('ZREM', P .. 'config:log', sentinel(former))
  end
  guard_sets(id)
  redis.call('HSET', P .. 'epoch', 'id', id)
  begin_recovery(id, limit)
end

-- Another run of the server may have lost the last of what this one had: strangers wait until the nodes have reported, and
-- what they know of claims they read anew.
local function await_nodes(id, limit, ttl)
  local floor = next_claims_revision()
  redis.call('SET', P .. 'claims:floor', whole(floor))
  local _, unfinished = epoch()
  if unfinished == 0 then ask_for_copies(config_epoch(), stored('config:revision')) end
  begin_recovery(id, limit)
  for _, node in ipairs(redis.call('ZRANGEBYSCORE', P .. 'nodes:heard', whole(now - ttl), '+inf')) do
    redis.call('HSETNX', P .. 'epoch:nodes', node, '0')
  end
end

-- Whether this Redis has never had anything: no script has succeeded in it, and it has replicated no other.
local function is_new()
  if redis.call('EXISTS', P .. 'fence') == 1 then return false end
  local stats = server_info('commandstats')
  -- without it, or when it was reset, it says nothing
  if stats == '' or string.find(stats, 'cmdstat_config:') or string.find(stats, 'cmdstat_config|resetstat:') then return false end
  for line in string.gmatch(stats, 'cmdstat_eval[^\r\n]+') do
    local calls, failed = string.match(line, 'calls=(%d+).*failed_calls=(%d+)')
    if not calls or tonumber(calls) > tonumber(failed) then return false end
  end
  local former = string.match(server_info('replication'), 'master_replid2:(%x+)')
  return former ~= nil and not string.find(former, '[^0]')
end

-- Notes what a node has done, and which nodes were alive by what it knows: whether it knows all of them or not, they may have
-- claims. Returns whether nothing is left to wait for.
local function all_have_reported(node, state, knows, knows_all)
  for _, other in ipairs(knows) do redis.call('HSETNX', P .. 'epoch:nodes', other, '0') end
  redis.call('HSET', P .. 'epoch:nodes', node, state)
  if knows_all then redis.call('HSET', P .. 'epoch', 'known', '1') end
  if redis.call('HEXISTS', P .. 'epoch', 'new') == 1 then
    local uptime = string.match(server_info('server'), 'uptime_in_seconds:(%d+)')
    if tonumber(uptime or '0') >= FOUND_S then redis.call('HSET', P .. 'epoch', 'known', '1') end
  end
  return least_reported() == 2
end

-- A new epoch of the configuration, which continues what there is. Its revisions begin above those of all earlier ones, of
-- those that were lost, too, as long as there was not one for each millisecond.
local function begin_config(from, revision)
  local next = math.max(wall, tonumber(from) + 1, tonumber(revision) + 1)
  redis.call('HSET', P .. 'epoch', 'config', table.concat({ whole(next), from, revision }, ' '))
  redis.call('SET', P .. 'config:revision', whole(next))
end

-- Everybody may claim. The best copy of the configuration that was offered takes the place of what is there.
local function open(id)
  local offered, from, revision = unpack(redis.call('HMGET', P .. 'epoch', 'offered', 'from', 'revision'))
  if offered then
    redis.call('DEL', P .. 'config', P .. 'config:log', P .. 'config:gone')
    local entries = redis.call('HGETALL', P .. 'staged')
    for at = 1, #entries, 2 do
      local seen = string.match(entries[at + 1], '^%d+')
      if seen then
        redis.call('HSET', P .. 'config', entries[at], entries[at + 1])
        redis.call('ZADD', P .. 'config:log', seen, entries[at])
      end
    end
    -- what was removed before is not remembered: who knows less reads everything
    redis.call('SET', P .. 'config:floor', revision)
    guard_sets(id)
  end
  begin_config(from, revision)
  redis.call('DEL', P .. 'staged', P .. 'epoch:nodes')
  redis.call('HDEL', P .. 'epoch', 'offered', 'known', 'new')
  redis.call('HSET', P .. 'epoch', 'until', '0')
  tell('opened')
end
