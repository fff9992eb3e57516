-- Arguments: a cursor of HSCAN, and about how many. Answers the next cursor, and ids with records in turn.
return redis.call('HSCAN', P .. 'records', ARGV[1], 'COUNT', ARGV[2])
