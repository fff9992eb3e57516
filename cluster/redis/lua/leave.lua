local node, incarnation = ARGV[1], ARGV[2]
local present = redis.call('HGET', P .. 'nodes', node)
if not present or string.match(present, '^(%S+)') ~= incarnation then return 0 end
forget_node(node)
tidy_rows()
tell('nodes')
return 1
