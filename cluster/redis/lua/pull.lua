-- What changed in claims and config since the revisions that a node knows; everything when it knows none that is kept.
-- A Redis that is behind the highest fence that the node knows of is about to be restored: nothing of it is told.
-- There may be many claims, and others wait meanwhile: they are told in parts. Where all are read, `cursor` is that of HSCAN,
-- '0' for the first part, and `claims_since` the revision at which it began: what changed meanwhile is told after the last one.
local known, claims_since, config_since, highest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local known_config, cursor, most = ARGV[5], ARGV[6], tonumber(ARGV[7])

local function is_kept(set, since)
  return since > 0 and since <= stored(set .. ':revision') and since >= stored(set .. ':floor')
end

local function with_values(set, keys)
  local pairs = {}
  for at, value in ipairs(values_of(set, keys)) do pairs[2 * at - 1], pairs[2 * at] = keys[at], value or '' end
  return pairs
end

local function config_changes()
  local revision = whole(stored('config:revision'))
  if not is_kept('config', config_since) then return { revision, 1, redis.call('HGETALL', P .. 'config') } end
  local keys = redis.call('ZRANGEBYSCORE', P .. 'config:log', '(' .. whole(config_since), '+inf')
  return { revision, 0, with_values('config', keys) }
end

-- `all` with the first part of everything, `more` with a further one, or what `changed`. Where another part is to be asked for,
-- the cursor for it is the last value, and the revision the one that it goes on from.
local function claims_changes()
  local revision = stored('claims:revision')
  local goes_on = is_kept('claims', claims_since)
  if goes_on and cursor == '0' then
    local keys = redis.call('ZRANGEBYSCORE', P .. 'claims:log', '(' .. whole(claims_since), '+inf', 'LIMIT', 0, most)
    local is_part = #keys == most
    if is_part then revision = tonumber(redis.call('ZSCORE', P .. 'claims:log', keys[most])) end
    return { whole(revision), 'changed', with_values('claims', keys), is_part and '0' or '' }
  end
  local next, pairs = unpack(redis.call('HSCAN', P .. 'claims', goes_on and cursor or '0', 'COUNT', most))
  if goes_on then return { whole(claims_since), 'more', pairs, next } end
  if next == '0' then return { whole(revision), 'all', pairs, '' } end
  -- one that was lost: no later part could go on from it
  if revision == 0 then revision = next_claims_revision() end
  return { whole(revision), 'all', pairs, next }
end

if highest > stored('fence') then return { known, 0, { '0', 'nothing', {}, '' }, { '0', 0, {} }, '' } end
reap_claims()
local id = epoch()
if id ~= known then claims_since = 0 end
if config_epoch() ~= known_config then config_since = 0 end
return {
  id or '', is_open(highest) and 1 or 0, claims_changes(), config_changes(),
  redis.call('HGET', P .. 'epoch', 'config') or '',
}
