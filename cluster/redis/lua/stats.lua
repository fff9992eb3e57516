-- The last report of a node that counted, and rows as they are with it.
local rows = { redis.call('HGET', P .. 'stats:seq', ARGV[1]) or '0' }
for at = 2, #ARGV do rows[at] = redis.call('HGETALL', P .. 'stats:row:' .. ARGV[at]) end
return rows
