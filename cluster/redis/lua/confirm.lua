-- For each claim: 1 it is there, 0 nobody has the key, or the record of who has it.
local ttl = tonumber(ARGV[1])
local results = {}
for at = 2, #ARGV, 2 do
  local key, token = ARGV[at], ARGV[at + 1]
  local record = redis.call('HGET', P .. 'claims', key)
  if record and token_of(record) == token then
    results[#results + 1] = 1
  else
    results[#results + 1] = claimed(key, ttl) or 0
  end
end
return results
