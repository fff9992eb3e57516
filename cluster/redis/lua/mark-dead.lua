-- The cluster port of a node refuses connections. If its subscription is gone, too, its process has died: nobody waits for
-- the end of its time.
local node, incarnation = ARGV[1], ARGV[2]
local ttl, highest = tonumber(ARGV[3]), tonumber(ARGV[4])

if incarnation_of(node) ~= incarnation then return 'gone' end
if not is_marked_dead(node, incarnation) then
  if not is_open(highest) or not has_unsubscribed(node, incarnation) then return 'alive' end
  redis.call('HSET', P .. 'nodes:buried', node, incarnation)
  redis.call('ZADD', P .. 'nodes:heard', whole(now - ttl - 1), node)
  withdraw_node(node)
  judge_gone(node)
  -- before its claims are: whoever takes them over does not reckon with it
  tell(table.concat({ 'buried', node, incarnation }, ' '))
end
reap_claims()
return 'dead'
