-- What the next holder of a key inherits. Changes nothing that others follow.
local key, token, value, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local record = claimed(key)
if not record then return 0 end
if token_of(record) ~= token then return record end
local keep = keep_of(record)
if keep > 0 then redis.call('SET', P .. 'kept:' .. key, value, 'PX', whole(keep + ttl)) end
return 1
