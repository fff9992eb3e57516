-- Records: `incarnation value` by id in `records`; ids of finished ones with the time of that in `records:finished`.
-- Arguments: an incarnation, then ids with values, '' for the value that is there. 0 for each that is finished.
local incarnation, taken = ARGV[1], {}
for at = 2, #ARGV, 2 do
  local id, value = ARGV[at], ARGV[at + 1]
  local isFinished = redis.call('ZSCORE', P .. 'records:finished', id)
  if value == '' then value = string.match(redis.call('HGET', P .. 'records', id) or '', '^%S+ (.*)$') end
  if value and not isFinished then redis.call('HSET', P .. 'records', id, incarnation .. ' ' .. value) end
  taken[#taken + 1] = isFinished and 0 or 1
end
return taken
