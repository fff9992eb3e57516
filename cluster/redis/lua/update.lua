local key, token, meta, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local record = claimed(key)
if not record then return 0 end
if token_of(record) ~= token then return record end
local head, keep = string.match(record, '^(%S+ %S+ %S+ %S+ (%S+) )')
redis.call('HSET', P .. 'claims', key, head .. meta)
mark('claims', { key }, redis.call('INCR', P .. 'claims:revision'), true)
keep_meta(key, meta, tonumber(keep), ttl)
tell('claims')
return 1
