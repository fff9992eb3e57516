-- Arguments: the incarnation of the node that asks, then ids with the incarnation that has to have each. Answers for each
-- '-', or '+' with its value: that one is finished now.
local FINISHED_MS, MOST_FINISHED = 600000, 100000
local outcomes = {}
for at = 2, #ARGV, 2 do
  local id, wanted = ARGV[at], ARGV[at + 1]
  local owner, value = string.match(redis.call('HGET', P .. 'records', id) or '', '^(%S+) (.*)$')
  local isOthers = (owner or ARGV[1]) ~= wanted
  local isFinished = redis.call('ZSCORE', P .. 'records:finished', id)
  if isOthers or isFinished then
    outcomes[#outcomes + 1] = '-'
  else
    redis.call('HDEL', P .. 'records', id)
    redis.call('ZADD', P .. 'records:finished', whole(wall), id)
    outcomes[#outcomes + 1] = '+' .. (value or '')
  end
end
redis.call('ZREMRANGEBYSCORE', P .. 'records:finished', '-inf', whole(wall - FINISHED_MS))
redis.call('ZREMRANGEBYRANK', P .. 'records:finished', 0, -MOST_FINISHED - 1)
return outcomes
