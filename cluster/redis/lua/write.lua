-- After what the writer knows, changes of four arguments each: key, revision that was seen, whether there is a value, value.
local known, known_revision = ARGV[1], tonumber(ARGV[2])
if not is_open() then return { 'wait' } end
-- an older state came back: what is written to it would be lost with it (beat.lua)
if epoch() == known and known_revision > stored('config:revision') then return { 'wait' } end

local function revision_of(key)
  local entry = redis.call('HGET', P .. 'config', key)
  return entry and tonumber(string.match(entry, '^%S+')) or 0
end

for at = 3, #ARGV, 4 do
  local present = revision_of(ARGV[at])
  if present ~= tonumber(ARGV[at + 1]) then return { 'conflict', ARGV[at], whole(present) } end
end

local revision = redis.call('INCR', P .. 'config:revision')
for at = 3, #ARGV, 4 do
  local key, value = ARGV[at], ARGV[at + 3]
  if ARGV[at + 2] == '1' then
    redis.call('HSET', P .. 'config', key, whole(revision) .. ' ' .. value)
    mark('config', key, revision, true)
  else
    -- listeners hear of it, too, where there was nothing
    mark('config', key, revision, false)
    for _, other in ipairs(redis.call('HKEYS', P .. 'config')) do
      if other == key or string.sub(other, 1, #key + 1) == key .. '/' then
        redis.call('HDEL', P .. 'config', other)
        mark('config', other, revision, false)
      end
    end
  end
end
tell('config')
return { 'written', whole(revision) }
