local node, incarnation = ARGV[1], ARGV[2]
local present = redis.call('HGET', P .. 'nodes', node)
if not present or string.match(present, '^(%S+)') ~= incarnation then return 0 end
withdraw_node(node)
withdraw_left()
for _, set in ipairs({ 'nodes', 'nodes:drain', 'stats:seq' }) do redis.call('HDEL', P .. set, node) end
redis.call('ZREM', P .. 'nodes:heard', node)
tell('nodes')
return 1
