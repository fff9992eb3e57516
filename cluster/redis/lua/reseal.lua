-- Entries of the configuration with other MACs: key, text that was seen, text. What has changed since stays as it is.
for at = 1, #ARGV, 3 do
  if redis.call('HGET', P .. 'config', ARGV[at]) == ARGV[at + 1] then
    redis.call('HSET', P .. 'config', ARGV[at], ARGV[at + 2])
  end
end
return 1
