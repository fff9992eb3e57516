local key, token, node, incarnation, meta = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ttl, floor, keep = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local take, before, slack = ARGV[9] == '1', ARGV[10], tonumber(ARGV[11])
-- of a claim that is made anew: what it has kept or inherited
local kept = ARGV[12]

-- In a Redis that has lost its claims those come first whose lease is valid; then, when no other can be valid any more,
-- those that were cut off; then all.
local function may_claim()
  local id, limit = epoch()
  -- a new fence would hide that the state is an older one
  if not id or not is_sound(id, floor) then return false end
  if limit == 0 or before == 'valid' then return true end
  return before == 'lapsed' and (limit - now <= slack or least_reported() > 0)
end
if not may_claim() then return { 'wait' } end

local present = claimed(key)
if present and token_of(present) ~= token and not take then return { 'owner', present } end

local left = tonumber(redis.call('ZSCORE', P .. 'claims:expiry', key) or '0') - now
local number = fence(floor)
local inherited = redis.call('GET', P .. 'kept:' .. key)
put_claim(key, table.concat({ whole(number), token, node, incarnation, whole(keep), meta }, ' '), ttl)
if kept ~= '' and keep > 0 then redis.call('SET', P .. 'kept:' .. key, kept) end
hold_kept(key, keep, ttl)
local lease = { 'lease', whole(number), inherited or '' }
if present and token_of(present) ~= token then
  -- who had it may act on it until its own time is over, or until it says that it does not any more
  lease[4], lease[5] = token_of(present), whole(left)
end
return lease
