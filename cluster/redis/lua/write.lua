-- After what the writer knows, and the revision that it has signed its values for, four arguments for each entry: key,
-- revision that was seen, what becomes of it (`put`, `removed`; `expected` is compared and stays as it is), MAC and value.
local known, known_revision, signed_for = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if not is_open(0) then return { 'wait' } end
-- an older state came back: what is written to it would be lost with it (beat.lua)
if config_epoch() == known and known_revision > stored('config:revision') then return { 'wait' } end

local function revision_of(key)
  local entry = redis.call('HGET', P .. 'config', key)
  return entry and tonumber(string.match(entry, '^%S+')) or 0
end

for at = 4, #ARGV, 4 do
  local present = revision_of(ARGV[at])
  if present ~= tonumber(ARGV[at + 1]) then return { 'conflict', ARGV[at], whole(present) } end
end

local present = stored('config:revision')
if present + 1 ~= signed_for then return { 'moved', '', whole(present) } end

-- One pass over the configuration for all removed paths together, and few commands for thousands of keys: nobody else
-- is served meanwhile. Changes count in their order: what comes after a removal is there.
local removed_at = {}
for at = 4, #ARGV, 4 do
  if ARGV[at + 2] == 'removed' then removed_at[ARGV[at]] = at end
end

-- The last change that removes a key or a path above it; 0 when none does.
local function removal_of(key)
  local last = removed_at[key] or 0
  local slash = string.find(key, '/', 1, true)
  while slash do
    last = math.max(last, removed_at[string.sub(key, 1, slash - 1)] or 0)
    slash = string.find(key, '/', slash + 1, true)
  end
  return last
end

local revision = redis.call('INCR', P .. 'config:revision')
local put, kept, entries, gone, dropped = {}, {}, {}, {}, {}
for at = 4, #ARGV, 4 do
  local key = ARGV[at]
  local fate = ARGV[at + 2]
  -- listeners hear of a removal, too, where there was nothing
  if fate == 'removed' or (fate == 'put' and removal_of(key) > at) then
    gone[#gone + 1] = key
  elseif fate == 'put' then
    put[key] = true
    kept[#kept + 1] = key
    entries[#entries + 1] = key
    entries[#entries + 1] = whole(revision) .. ' ' .. ARGV[at + 3]
  end
end
if next(removed_at) then
  for _, key in ipairs(redis.call('HKEYS', P .. 'config')) do
    if not put[key] and removal_of(key) > 0 then
      gone[#gone + 1] = key
      dropped[#dropped + 1] = key
    end
  end
end

in_parts('HDEL', P .. 'config', dropped)
in_parts('HSET', P .. 'config', entries)
mark('config', gone, revision, false)
mark('config', kept, revision, true)
tell('config')
return { 'written', whole(revision) }
