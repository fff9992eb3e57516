-- A node says that it lives, and hears what it has to know. Here a Redis that lost its content is noticed, too.
local node, incarnation, description = ARGV[1], ARGV[2], ARGV[3]
local ttl, forget, joining = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local grace, copy_epoch, copy_revision = tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])
-- The highest fence that the node knows of, what it has done in which recovery, and the nodes that it knows (recovery.lua).
local highest, reported, reported_of, knows = tonumber(ARGV[10]), ARGV[11], ARGV[12], ARGV[13]
-- How long a node has that is to ask another one whether it lives.
local asking = tonumber(ARGV[14])
-- What it says of itself is for the others to hear at once.
local announces = ARGV[15] == '1'
-- Nobody else can have come and claimed something since it knew all nodes.
local knows_all = ARGV[16] == '1'

-- Whether Redis hears of another life of the node, which may still run: of an earlier one, where it came back older.
local function is_replaced()
  local known = incarnation_of(node)
  return known and known ~= incarnation and not joining and now - heard_at(node) <= ttl
end

local id, limit, run, config = epoch()
-- A Redis that came back with an older state, or that has lost a part of it, knows less than a node does.
local is_behind = highest > stored('fence')
  or (limit == 0 and config == copy_epoch and copy_revision > stored('config:revision'))
if not id or is_behind or not has_sets(id) or (limit > 0 and not has_recovery(id)) then
  local was_new = not id and is_new()
  start_anew(now + grace, math.max(tonumber(copy_epoch), highest), ttl)
  if was_new then redis.call('HSET', P .. 'epoch', 'new', '1') end
  id, limit, run = epoch()
elseif run ~= server_run() then
  await_nodes(id, now + grace, ttl)
  id, limit, run = epoch()
end
local offer = 0
if limit > 0 then
  local staged = redis.call('HMGET', P .. 'epoch', 'from', 'revision')
  local from, revision = tonumber(staged[1]), tonumber(staged[2])
  local own = tonumber(copy_epoch)
  if copy_revision > 0 and (own > from or (own == from and copy_revision > revision)) then offer = 1 end
  -- one whose claims are not taken yet has made none again
  local has_reported = reported_of == redis.call('HGET', P .. 'epoch', 'recovery') and offer == 0 and not is_replaced()
  local state = has_reported and reported or '0'
  -- one that cannot bring its copy does not hold up the others for ever
  if all_have_reported(node, state, cjson.decode(knows), knows_all) or (now >= limit and (offer == 0 or now >= limit + grace)) then
    open(id)
    limit = 0
  end
end

local status = 'present'
local present = redis.call('HGET', P .. 'nodes', node)
local known, joined = string.match(present or '', '^(%S+) (%S+)')
local was_marked_dead = is_marked_dead(node, incarnation)
if was_marked_dead and not joining then
  -- it lives after all, and stops what it has before it joins anew
  status = 'buried'
elseif known ~= incarnation or was_marked_dead then
  if is_replaced() then
    status = 'replaced'
  else
    -- a process that may still run under this id has what it has until then
    if known then end_life(known, is_succeeded(node, present, description) and now or heard_at(node) + ttl) end
    if known and known ~= incarnation then redis.call('HDEL', P .. 'claims:lost', known) end
    withdraw_node(node)
    redis.call('HDEL', P .. 'stats:seq', node)
    redis.call('HDEL', P .. 'nodes:drain', node)
    acquit(node, incarnation)
    redis.call('HDEL', P .. 'nodes:buried', node)
    known, joined = incarnation, whole(now)
    -- whoever goes on without Redis has to ask it, too
    tell('nodes')
  end
end
if status == 'present' then
  redis.call('HSET', P .. 'nodes', node, table.concat({ incarnation, joined, description }, ' '))
  redis.call('ZADD', P .. 'nodes:heard', whole(now), node)
  acquit(node, incarnation)
  note_subscription(node, incarnation)
  if announces then tell('nodes') end
end

-- What becomes of nodes that are not heard of any more: the process of one may have died, or it is cut off from Redis alone.
-- One node at a time asks it, and is told to until it has said what it heard.
local function is_to_ask(life)
  local key, own = P .. 'asked:' .. life, node .. ' ' .. incarnation
  local asker = redis.call('GET', key)
  if asker == own then return true end
  if asker then
    local other, its = string.match(asker, '^(%S+) (%S+)$')
    -- long before it is taken for silent: that two ask does no harm
    if other and incarnation_of(other) == its and heard_at(other) + ttl / 2 > now then return false end
  end
  redis.call('SET', key, own, 'PX', whole(asking))
  return true
end

local asks = {}
local silent = redis.call('ZRANGEBYSCORE', P .. 'nodes:heard', '-inf', whole(now - ttl))
for _, lost in ipairs(silent) do
  withdraw_node(lost)
  -- those that are yet to find a Redis that was away are not asked
  if limit == 0 and status == 'present' and not fate_of(lost) then
    local life = incarnation_of(lost)
    if not life then
      judge_gone(lost)
    else
      end_lease(life)
      if is_to_ask(life) then asks[#asks + 1] = { lost, life } end
    end
  end
end
local forgotten = #silent > 0 and redis.call('ZRANGEBYSCORE', P .. 'nodes:heard', '-inf', whole(now - forget)) or {}
for _, lost in ipairs(forgotten) do
  if fate_of(lost) == 'gone' then
    forget_node(lost)
  elseif limit == 0 and cut_until(lost) <= now - forget then
    -- nobody could ask it in all that time
    judge_gone(lost)
  end
end
tidy_rows()
reap_claims()

-- Each beat tells of every node: one command reads what it tells of all of them.
local function by_node(set)
  local entries, values = redis.call('HGETALL', P .. set), {}
  for at = 1, #entries, 2 do values[entries[at]] = entries[at + 1] end
  return values
end

local heard, ids = redis.call('ZRANGE', P .. 'nodes:heard', 0, -1, 'WITHSCORES'), {}
for at = 1, #heard, 2 do ids[#ids + 1] = heard[at] end
local rows, drains, fates = {}, by_node('nodes:drain'), by_node('nodes:fate')
for at, row in ipairs(values_of('nodes', ids)) do
  local other = ids[at]
  local fate = fates[other] and fate_in(fates[other])
  -- a row that was lost comes back with the node's own beat
  if row then rows[#rows + 1] = { other, now - heard[2 * at], drains[other] and 1 or 0, row, fate or '' } end
end
return {
  status, whole(now), id, limit == 0 and 1 or 0, offer,
  whole(stored('claims:revision')), whole(stored('config:revision')), rows,
  limit > 0 and redis.call('HGET', P .. 'epoch', 'recovery') or '',
  -- as long as it is the same, this life of the node has lost no claim
  table.concat({ id, run, joined or '', redis.call('HGET', P .. 'claims:lost', incarnation) or '' }, ':'),
  asks,
}
