-- What a node has found that asked another one whether it lives: `cut` when that one answered, `gone` when it did not.
local node, incarnation, verdict, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local _, limit = epoch()
redis.call('DEL', P .. 'asked:' .. incarnation)
if limit > 0 or incarnation_of(node) ~= incarnation then return 0 end
-- it was heard of meanwhile, or is known to have died
if fate_of(node) == 'gone' or tonumber(redis.call('ZSCORE', P .. 'nodes:heard', node) or '0') + ttl > now then return 0 end
if verdict == 'cut' then judge_cut(node, now + ttl) else judge_gone(node) end
reap_claims()
tell('nodes')
return 1
