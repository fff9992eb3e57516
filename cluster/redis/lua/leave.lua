local node, incarnation, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3])
local present = redis.call('HGET', P .. 'nodes', node)
if not present or string.match(present, '^(%S+)') ~= incarnation then return 0 end
-- what it could not release may have been taken from one that still acts on it
end_life(incarnation, now + ttl)
forget_node(node)
tidy_rows()
tell('nodes')
return 1
