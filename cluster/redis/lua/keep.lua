-- What the next holder of a key inherits. Changes nothing that others follow.
local key, token, value = ARGV[1], ARGV[2], ARGV[3]
local record = redis.call('HGET', P .. 'claims', key)
if not record then return 0 end
if token_of(record) ~= token then return record end
local keep = keep_of(record)
if keep > 0 then redis.call('SET', P .. 'kept:' .. key, value, 'PX', whole(keep + KEPT_MS)) end
return 1
