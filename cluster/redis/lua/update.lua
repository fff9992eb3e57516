local key, token, meta = ARGV[1], ARGV[2], ARGV[3]
local record = claimed(key)
if not record then return 0 end
if token_of(record) ~= token then return record end
redis.call('HSET', P .. 'claims', key, string.match(record, '^%S+ %S+ %S+ %S+ %S+ ') .. meta)
mark('claims', { key }, redis.call('INCR', P .. 'claims:revision'), true)
tell('claims')
return 1
