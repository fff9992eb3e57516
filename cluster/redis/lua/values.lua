-- What holders say of their claims, and what the next ones inherit, which nobody follows: `key token meta value` for each
-- claim, '' for what stays. Returns for each: 1 it is written, 0 nobody has the key, or the record of who has it.

-- one command reads all of them: there are thousands in a second
local keys, records = {}, {}
for at = 1, #ARGV, 4 do keys[#keys + 1] = ARGV[at] end
for at, record in ipairs(values_of('claims', keys)) do records[keys[at]] = record end

-- How long what is kept lasts, by what a claim says of it.
local lasts = {}
local function last_of(keep)
  lasts[keep] = lasts[keep] or whole(keep + KEPT_MS)
  return lasts[keep]
end

local results = {}
for at = 1, #ARGV, 4 do
  local key, token, meta, value = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local record = records[key]
  local result = 1
  -- as token_of and keep_of, at once
  local present, keep = string.match(record or '', '^%S+ (%S+) %S+ %S+ %S+ (%S+)')
  if not record then
    result = 0
  elseif present ~= token then
    result = record
  else
    local updated = meta ~= '' and string.match(record, '^%S+ %S+ %S+ %S+ %S+ %S+ ') .. meta or record
    -- who doubts that it is there writes it again
    if updated ~= record then
      redis.call('HSET', P .. 'claims', key, updated)
      records[key] = updated
      note_claims(key, updated)
    end
    if value ~= '' and keep ~= '0' then redis.call('SET', P .. 'kept:' .. key, value, 'PX', last_of(keep)) end
  end
  results[#results + 1] = result
end
return results
