local key, token, meta = ARGV[1], ARGV[2], ARGV[3]
local record = redis.call('HGET', P .. 'claims', key)
if not record then return 0 end
if token_of(record) ~= token then return record end
redis.call('HSET', P .. 'claims', key, string.match(record, '^%S+ %S+ %S+ %S+ %S+ %S+ ') .. meta)
note_claims(key, true)
return 1
