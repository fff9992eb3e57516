-- What holders say of their claims, and what the next ones inherit, which nobody follows: `key token meta value` for each
-- claim, '' for what stays. Returns for each: 1 it is written, 0 nobody has the key, or the record of who has it.
local results = {}
for at = 1, #ARGV, 4 do
  local key, token, meta, value = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local record = redis.call('HGET', P .. 'claims', key)
  local result = 1
  if not record then
    result = 0
  elseif token_of(record) ~= token then
    result = record
  else
    local updated = meta ~= '' and string.match(record, '^%S+ %S+ %S+ %S+ %S+ %S+ ') .. meta or record
    -- who doubts that it is there writes it again
    if updated ~= record then
      redis.call('HSET', P .. 'claims', key, updated)
      note_claims(key, updated)
    end
    local keep = keep_of(record)
    if value ~= '' and keep > 0 then redis.call('SET', P .. 'kept:' .. key, value, 'PX', whole(keep + KEPT_MS)) end
  end
  results[#results + 1] = result
end
return results
