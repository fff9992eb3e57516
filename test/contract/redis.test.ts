import { openNode } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { contract } from './suite.ts';

contract('redis', async (t, count) => {
  const redis = await RedisServer.start(t);
  const ids = Array.from({ length: count }, (_, n) => `node ${n}`);
  return await Promise.all(ids.map((id) => openNode(t, id, { url: redis.url })));
});
