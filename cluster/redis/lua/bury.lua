-- The cluster port of a node refuses connections. If its subscription is gone, too, its process has died: nobody waits for
-- the end of its time. The keys are claims that it may have, as many as one step takes; other keys of its own expire.
local node, incarnation = ARGV[1], ARGV[2]
local ttl, highest = tonumber(ARGV[3]), tonumber(ARGV[4])

local function free_claims(from)
  for at = from, #ARGV do
    local key = ARGV[at]
    local record = redis.call('HGET', P .. 'claims', key)
    local holder, life = string.match(record or '', '^%S+ %S+ (%S+) (%S+)')
    if holder == node and life == incarnation then
      hold_kept(key, keep_of(record), 0)
      drop_claim(key)
    end
  end
end

local present = redis.call('HGET', P .. 'nodes', node)
if not present or string.match(present, '^%S+') ~= incarnation then return 'gone' end
if not is_buried(node, incarnation) then
  if not is_open(highest) or not has_unsubscribed(node, incarnation) then return 'alive' end
  redis.call('HSET', P .. 'nodes:buried', node, incarnation)
  redis.call('ZADD', P .. 'nodes:heard', whole(now - ttl - 1), node)
  withdraw_node(node)
  -- before its claims are: whoever takes them over does not reckon with it
  tell(table.concat({ 'buried', node, incarnation }, ' '))
end
free_claims(5)
return 'buried'
