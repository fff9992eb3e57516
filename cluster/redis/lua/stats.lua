local rows = {}
for at, row in ipairs(ARGV) do rows[at] = redis.call('HGETALL', P .. 'stats:row:' .. row) end
return rows
