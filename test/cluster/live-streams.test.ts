import test, { type ExecutionContext } from 'ava';
import { Registry } from '../../src/core/registry.ts';
import { LiveStreams } from '../../src/web/live-streams.ts';
import { inCluster } from '../support/cluster/in-cluster.ts';
import { addVhost, VIDEO } from '../support/server/live.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

const BOTH = ['llhls', 'webrtc'] as const;

/** What a node has that lists streams, and the calls about them that others made. */
async function open(t: ExecutionContext, redis: RedisServer, id: string) {
  const registry = new Registry();
  addVhost(registry);
  const { cluster, directory, others, calls, asked, goLive, knows } = await inCluster(t, redis, id, registry);
  const live = new LiveStreams({ registry, directory, others, calls });
  const vhost = registry.vhost('default');
  const application = vhost.application('app');
  return {
    cluster,
    asked,
    goLive: (name: string) => goLive(application, name, [VIDEO]),
    knows: (name: string) => knows(application, name),
    one: async (stream: string) => (await live.one(vhost, BOTH, { app: 'app', stream })).streams,
    list: async () => (await live.list(vhost, BOTH)).streams.map(({ stream }) => stream).toSorted(),
  };
}

async function openThree(t: ExecutionContext) {
  const redis = await RedisServer.start(t);
  const nodes = (await Promise.all(['a', 'b', 'c'].map((id) => open(t, redis, id)))) as [Node, Node, Node];
  await until('they see each other', () => nodes.every(({ cluster }) => cluster.nodes().length === nodes.length));
  return nodes;
}

type Node = Awaited<ReturnType<typeof open>>;

test('a stream is asked for where it is alone; many at once are one call, and more players none', async (t) => {
  const [a, b, c] = await openThree(t);
  const names = Array.from({ length: 40 }, (_, index) => `s/${index}`);
  await Promise.all([...names.map((name) => a.goLive(name)), c.goLive('elsewhere')]);
  await Promise.all([...names, 'elsewhere'].map((name) => b.knows(name)));
  const found = await Promise.all([...names, ...names].map((name) => b.one(name)));
  t.deepEqual(
    found.map(([live]) => live?.stream),
    [...names, ...names],
  );
  t.is(a.asked.length, 1);
  t.is(c.asked.length, 0);
  t.is((await b.one('elsewhere')).length, 1);
  t.is(c.asked.length, 1);
  t.deepEqual(await b.one('nobody'), []);
  t.is((await a.one('s/0')).length, 1);
  t.deepEqual([a.asked.length, b.asked.length, c.asked.length], [1, 0, 1]);
});

test('the viewer count of a remote stream is cached for a while, and then asked of its owner again', async (t) => {
  const [a, b] = await openThree(t);
  const output = await a.goLive('one');
  await b.knows('one');
  t.is((await b.one('one'))[0]?.viewers, 0);
  const leave = output.addSession({ id: '1', kind: 'webrtc', createdTime: 0, out: output.counters.out, kick() {} });
  await until('b tells of the viewer', async () => (await b.one('one'))[0]?.viewers === 1);
  t.is(a.asked.length, 2);
  leave();
  output.input.close('over');
  await until('b tells of none', async () => (await b.one('one')).length === 0);
});

test('the list of all nodes costs each of them one call, whichever node is asked', async (t) => {
  const [a, b, c] = await openThree(t);
  await Promise.all([a.goLive('one'), b.goLive('two'), c.goLive('three')]);
  await Promise.all([b.knows('one'), b.knows('three')]);
  const lists = await Promise.all(Array.from({ length: 20 }, () => b.list()));
  for (const list of lists) t.deepEqual(list, ['one', 'three', 'two']);
  t.deepEqual([a.asked.length, b.asked.length, c.asked.length], [1, 0, 1]);
});
