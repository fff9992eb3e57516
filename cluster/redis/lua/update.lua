local key, token, meta = ARGV[1], ARGV[2], ARGV[3]
local record = redis.call('HGET', P .. 'claims', key)
if not record then return 0 end
if token_of(record) ~= token then return record end
local updated = string.match(record, '^%S+ %S+ %S+ %S+ %S+ %S+ ') .. meta
-- who doubts that it is there writes it again
if updated == record then return 1 end
redis.call('HSET', P .. 'claims', key, updated)
note_claims(key, true)
return 1
