import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { readMeta } from '../../src/directory/stream-key.ts';
import { openNode } from '../support/cluster/cluster.ts';
import { FakeKind, openTasks } from '../support/tasks/fake-task.ts';
import { VIDEO } from '../support/server/live.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

async function open(t: ExecutionContext, redis: RedisServer, id: string) {
  const node = openTasks(await openNode(t, id, { url: redis.url }), new FakeKind());
  t.teardown(() => node.tasks.close());
  return { ...node, application: node.registry.vhost('default').application('app') };
}

type Node = Awaited<ReturnType<typeof open>>;

/** Makes a stream live, and waits until its own node says so in the cluster. */
async function publish({ application, names, cluster }: Node, name: string) {
  const options = { replace: false, maxConnections: 0, silence: 'continue' } as const;
  const input = await names.publish(application, name, { type: 'Rtmp', kind: 'rtmp' }, options);
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, `${name}-out`);
  output.setTracks([VIDEO]);
  application.announce(output);
  await until(
    'it is told',
    async () => readMeta((await cluster.ownerOf(`stream/default/app/${name}`))?.meta)?.outputs.length === 1,
  );
  return input;
}

test('the stream of another node is found, listed and forgotten with that node', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = [await open(t, redis, 'a'), await open(t, redis, 'b')];
  t.is(await a.directory.locate(a.application, 'one-out'), undefined);
  const one = await publish(b, 'one');
  await publish(b, 'two');
  await a.directory.catchUp();
  t.deepEqual(a.directory.elsewhere(a.application).toSorted(), ['one', 'two']);
  t.like(await a.directory.locate(a.application, 'one-out'), { owner: { id: 'b' }, input: 'one' });
  t.deepEqual(b.directory.elsewhere(b.application), []);
  t.is(await b.directory.locate(b.application, 'one-out'), undefined, 'its own is not elsewhere');
  t.deepEqual([...a.directory.remoteOutputs('default')].map(({ output }) => output).toSorted(), ['one-out', 'two-out']);
  t.true(a.directory.inUse('default', 'app'));
  t.false(a.directory.inUse('default', 'other'));
  one.close('over');
  await until('its name is free', async () => (await b.cluster.ownerOf('stream/default/app/one')) === undefined);
  await a.directory.catchUp();
  t.deepEqual(a.directory.elsewhere(a.application), ['two']);
  t.is(await a.directory.locate(a.application, 'one-out'), undefined);
});

test('repeated requests for a stream that no node has ask Redis now and then only', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis({ port: redis.port });
  t.teardown(() => raw.disconnect());
  const a = await open(t, redis, 'a');
  const calls = async (): Promise<number> =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await raw.info('commandstats'))?.[1] ?? 0);
  const before = await calls();
  for (let n = 0; n < 500; n++) t.is(await a.directory.locate(a.application, 'none'), undefined);
  const count = (await calls()) - before;
  t.true(count < 250, `${count}`);
});

test('a stream that no node had is found as soon as one has it', async (t) => {
  const redis = await RedisServer.start(t);
  const [a, b] = [await open(t, redis, 'a'), await open(t, redis, 'b')];
  const publishing = publish(b, 'one');
  const found = await until('it is found', () => a.directory.locate(a.application, 'one-out'));
  t.like(found, { owner: { id: 'b' }, input: 'one' });
  await publishing;
});
