local key, token, node, incarnation, meta = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local ttl, floor, keep = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
-- From whom the key is taken: '0' nobody, '1' whoever has it, or the fence of the only one.
local take, before, slack = ARGV[9], ARGV[10], tonumber(ARGV[11])
-- of a claim that is made anew: what it has kept or inherited
local kept, silence = ARGV[12], ARGV[13]

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

-- What a life has that is over, or of which nothing is known yet, would last for ever; what may run only once of one whose
-- time is over is being dropped. It has to beat first.
if incarnation_of(node) ~= incarnation or redis.call('HEXISTS', P .. 'nodes:fate', node) == 1 or heard_at(node) + ttl <= now then
  return { 'wait' }
end

local present, last = claimed(key, ttl)
local is_others = present and token_of(present) ~= token
if is_others and take ~= '1' and take ~= string.match(present, '^%S+') then return { 'owner', present } end

local number = fence(floor)
local inherited = redis.call('GET', P .. 'kept:' .. key)
put_claim(key, table.concat({ whole(number), token, node, incarnation, silence, whole(keep), meta }, ' '))
redis.call('ZADD', P .. 'nodes:heard', whole(now), node)
if keep > 0 then
  local value = kept ~= '' and kept or inherited
  if value then redis.call('SET', P .. 'kept:' .. key, value, 'PX', whole(keep + KEPT_MS)) end
end
local lease = { 'lease', whole(number), inherited or '' }
if is_others then
  -- who had it may act on it until its own time is over, or until it says that it does not any more
  local left = last == math.huge and 0 or last - now
  redis.call('ZADD', P .. 'claims:taken', whole(now + left), key)
  lease[4], lease[5] = token_of(present), whole(left)
end
return lease
