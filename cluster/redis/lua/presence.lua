-- Stands before the scripts that follow whether the process of a node lives. Each node subscribes to a channel of its own.
-- `nodes:seen` has the nodes whose subscription this server saw at their last beat, as `incarnation run`: another server,
-- or another run of this one, knows nothing of it. `nodes:buried` has the incarnations of nodes whose process has died.

-- nil where the user may not ask.
local function subscribers(node, incarnation)
  return redis.pcall('PUBSUB', 'NUMSUB', table.concat({ P .. 'alive', node, incarnation }, ':'))[2]
end

local function note_subscription(node, incarnation)
  local run = server_run()
  if run ~= '' and (subscribers(node, incarnation) or 0) > 0 then
    redis.call('HSET', P .. 'nodes:seen', node, incarnation .. ' ' .. run)
  else
    redis.call('HDEL', P .. 'nodes:seen', node)
  end
end

-- Whether the subscription that was here has ended.
local function has_unsubscribed(node, incarnation)
  local seen = redis.call('HGET', P .. 'nodes:seen', node)
  return seen == incarnation .. ' ' .. server_run() and subscribers(node, incarnation) == 0
end

-- Whether the process that had a row is known to have died: its subscription has ended, and another one has its port, of the
-- same IP address. A name may lead to another host.
local function is_succeeded(node, row, by)
  local function address(text)
    local is_json, said = pcall(cjson.decode, string.match(text, '^%S+ (.*)$') or '')
    return is_json and type(said) == 'table' and type(said.address) == 'string' and said.address
  end
  local incarnation, description = string.match(row, '^(%S+) %S+ (.*)$')
  local had = address(description or '')
  local host = had and string.match(had, '^%a+://(.*):%d+$')
  local is_literal = host and (string.match(host, '^%d+%.%d+%.%d+%.%d+$') or string.match(host, '^%['))
  return is_literal and had == address(by) and has_unsubscribed(node, incarnation)
end

local function is_marked_dead(node, incarnation)
  return redis.call('HGET', P .. 'nodes:buried', node) == incarnation
end
