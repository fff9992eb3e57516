-- What a node has found that was to ask another one whether it lives: `cut` when that one answered, `gone` when it did not,
-- `unknown` when it could not ask.
local node, incarnation, verdict, ttl, asker = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local _, limit = epoch()
-- one that took longer may have found what is no longer so: others ask by now
if redis.call('GET', P .. 'asked:' .. incarnation) ~= asker then return 0 end
redis.call('DEL', P .. 'asked:' .. incarnation)
if verdict == 'unknown' or limit > 0 or incarnation_of(node) ~= incarnation then return 0 end
-- it was heard of meanwhile, or is known to have died
if fate_of(node) == 'gone' or heard_at(node) + ttl > now then return 0 end
if verdict == 'cut' then judge_cut(node, now + ttl) else judge_gone(node) end
reap_claims()
tell('nodes')
return 1
