local key, token, node, incarnation, meta = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ttl, floor, keep = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local take, was_holder = ARGV[9] == '1', ARGV[10] == '1'

if not is_open() and not was_holder then return { 'wait' } end

local present = claimed(key)
if present and token_of(present) ~= token and not take then return { 'owner', present } end

local number = fence(floor)
local inherited = redis.call('GET', P .. 'kept:' .. key)
put_claim(key, table.concat({ whole(number), token, node, incarnation, whole(keep), meta }, ' '), ttl)
keep_meta(key, meta, keep, ttl)
return { 'lease', whole(number), inherited }
