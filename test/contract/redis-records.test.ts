import test from 'ava';
import { Redis } from 'ioredis';
import { openNode } from '../support/cluster/cluster.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

test('the loss of all data of Redis is reported', async (t) => {
  const redis = await RedisServer.start(t);
  const node = await openNode(t, 'a', { url: redis.url });
  await node.records.put([{ id: 'one', value: 1 }]);
  let emptied = 0;
  node.events.on('emptied', () => emptied++);
  const raw = new Redis(redis.url);
  t.teardown(() => raw.disconnect());
  await raw.flushall();
  await until('it is told', () => emptied > 0);
  t.deepEqual(await node.records.finish([{ id: 'one', incarnation: node.self.incarnation }]), [{ value: undefined }]);
  t.is(emptied, 1);
});
