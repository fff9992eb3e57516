for at = 1, #ARGV, 2 do
  local key, token = ARGV[at], ARGV[at + 1]
  local record = redis.call('HGET', P .. 'claims', key)
  if record and token_of(record) == token then
    local keep = tonumber(string.match(record, '^%S+ %S+ %S+ %S+ (%S+)'))
    if keep > 0 then redis.call('PEXPIRE', P .. 'kept:' .. key, whole(keep)) end
    drop_claim(key)
  else
    tell('yielded ' .. token)
  end
end
return 1
