-- What changed in claims and config since the revisions that a node knows; everything when it knows none that is kept.
-- A Redis that is behind the highest fence that the node knows of is about to be restored: nothing of it is told.
local known, claims_since, config_since, highest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local known_config = ARGV[5]

local function changes(set, since)
  local revision = stored(set .. ':revision')
  local full = since == 0 or since > revision or since < stored(set .. ':floor')
  if full then return { whole(revision), 1, redis.call('HGETALL', P .. set) } end
  local pairs = {}
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. set .. ':log', '(' .. whole(since), '+inf')) do
    pairs[#pairs + 1] = key
    pairs[#pairs + 1] = redis.call('HGET', P .. set, key) or ''
  end
  return { whole(revision), 0, pairs }
end

if highest > stored('fence') then return { known, 0, { whole(claims_since), 0, {} }, { '0', 0, {} }, '' } end
reap_claims()
local id = epoch()
if id ~= known then claims_since = 0 end
if config_epoch() ~= known_config then config_since = 0 end
return {
  id or '', is_open(highest) and 1 or 0, changes('claims', claims_since), changes('config', config_since),
  redis.call('HGET', P .. 'epoch', 'config') or '',
}
