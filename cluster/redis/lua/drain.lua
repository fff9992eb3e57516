local node, drains = ARGV[1], ARGV[2] == '1'
if redis.call('HEXISTS', P .. 'nodes', node) == 0 then return 0 end
if drains then redis.call('HSET', P .. 'nodes:drain', node, '1') else redis.call('HDEL', P .. 'nodes:drain', node) end
tell('nodes')
return 1
