-- A node brings its copy of the configuration: revision and value by key. Kept when it is the best so far.
local id, copy_epoch, copy_revision = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local present, limit = epoch()
if present ~= id or limit == 0 then return 0 end
local staged = redis.call('HMGET', P .. 'epoch', 'from', 'revision')
local from, revision = tonumber(staged[1]), tonumber(staged[2])
if copy_epoch < from or (copy_epoch == from and copy_revision <= revision) then return 0 end
redis.call('DEL', P .. 'staged')
redis.call('HSET', P .. 'staged', sentinel(id), '')
for at = 4, #ARGV, 2 do redis.call('HSET', P .. 'staged', ARGV[at], ARGV[at + 1]) end
redis.call('HSET', P .. 'epoch', 'from', whole(copy_epoch), 'revision', whole(copy_revision), 'offered', '1')
return 1
