for at = 1, #ARGV, 2 do
  local key, token = ARGV[at], ARGV[at + 1]
  local record = redis.call('HGET', P .. 'claims', key)
  if record and token_of(record) == token then
    drop_claim(key, record)
  else
    tell('yielded ' .. token)
  end
end
return 1
