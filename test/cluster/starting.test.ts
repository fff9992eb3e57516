import test, { type ExecutionContext } from 'ava';
import { Registry } from '../../src/core/registry.ts';
import { playRequest } from '../support/access/access.ts';
import { inCluster } from '../support/cluster/in-cluster.ts';
import { addVhost, VIDEO } from '../support/server/live.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

const PROFILE = { name: 'low', outputStreamName: '${OriginStreamName}_low' };
const SOURCE = { type: 'Rtmp', kind: 'rtmp' } as const;
const OPTIONS = { replace: false, maxConnections: 0, silence: 'continue' } as const;

async function open(t: ExecutionContext, redis: RedisServer, id: string) {
  const registry = new Registry();
  addVhost(registry, { outputProfile: [PROFILE] as never });
  const node = await inCluster(t, redis, id, registry);
  t.teardown(() => node.access.close());
  const application = registry.vhost('default').application('app');
  const watch = (stream: string) =>
    node.access.admitViewer(playRequest({ stream }), (_application, name) => node.directory.known(application, name));
  return { ...node, application, watch };
}

test('a viewer of a stream that is starting on another node is held until it has started there', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = await Promise.all([open(t, redis, 'a'), open(t, redis, 'b')]);
  const input = await a.names.publish(a.application, 'live', SOURCE, OPTIONS);
  await until('b has heard of it', () => b.directory.isStarting(b.application, 'live_low'));
  const held = b.watch('live_low');
  await until('it is held', () => b.access.held === 1);
  await t.throwsAsync(b.watch('other'), { code: 'streamNotFound' });

  input.setTracks([VIDEO]);
  const output = a.application.addOutput(input, 'live_low');
  a.application.outputsMade(input);
  t.is(b.access.held, 1);
  output.setTracks([VIDEO]);
  a.application.announce(output);
  t.is((await held).found.input, 'live');
  await until('nothing more is to come of it', () => !b.directory.isStarting(b.application, 'live'));
  await t.throwsAsync(b.watch('live'), { code: 'streamNotFound' });
});

test('a publisher that leaves before its stream has started lets go of viewers on other nodes', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = await Promise.all([open(t, redis, 'a'), open(t, redis, 'b')]);
  const input = await a.names.publish(a.application, 'live', SOURCE, OPTIONS);
  await until('b has heard of it', () => b.directory.isStarting(b.application, 'live_low'));
  const held = b.watch('live_low');
  await until('it is held', () => b.access.held === 1);
  input.close('it left');
  await t.throwsAsync(held, { code: 'streamNotFound' });
  t.is(b.access.held, 0);
});
