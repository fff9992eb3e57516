import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Source } from '../../../src/core/source.ts';
import { KilnError } from '../../../src/errors.ts';
import { streamKey } from '../../../src/directory/stream-key.ts';
import { MULTIPLEX, SCHEDULED } from '../../../src/channels/channel-kind.ts';
import { isOfChannel, taskName } from '../../../src/channels/channel-name.ts';
import { PULL } from '../../../src/providers/pull/kind.ts';
import { TaskExistsError } from '../../../src/tasks/tasks.ts';
import { channelNode, SilentChannels } from '../../support/channels/channels.ts';
import { MemoryCluster } from '../../support/memory-cluster/cluster.ts';
import { multiplex, source, trackItem } from '../../support/channels/multiplex.ts';
import { until } from '../../support/time/until.ts';

const RTMP: Source = { type: 'Rtmp', kind: 'rtmp' };
const PUSHED = { replace: false, maxConnections: 0, silence: 'continue' } as const;
const SCHEDULE = {
  stream: { bypassTranscoder: false, videoTrack: true, audioTrack: true, audioMap: [], errorToleranceDurationMs: 500 },
  programs: [],
};
const MUX = multiplex([source('cam', [trackItem('v', 'main')])]);

async function open(t: ExecutionContext, ...ids: readonly string[]) {
  return await openIn(t, MemoryCluster.create(t, 1), ids);
}

async function openIn(t: ExecutionContext, cluster: MemoryCluster, ids: readonly string[]) {
  const nodes = [];
  for (const id of ids) {
    const own = await cluster.open(id);
    const node = channelNode(own);
    t.teardown(() => node.close());
    const application = node.registry.vhost('default').application('app');
    const owner = (stream: string) => own.ownerOf(streamKey({ vhost: 'default', app: 'app', stream }));
    nodes.push({ ...node, application, owner });
  }
  return nodes;
}

type Node = Awaited<ReturnType<typeof open>>[number];

const schedule = ({ channels, application }: Node, name = 'tv') =>
  channels.create(SCHEDULED, application, name, SCHEDULE);
const mux = ({ channels, application }: Node, name = 'tv') => channels.create(MULTIPLEX, application, name, MUX);
const publish = ({ names, application }: Node, name = 'tv', options: object = {}) =>
  names.publish(application, name, RTMP, { ...PUSHED, ...options });

/** How many of these came about; the others were refused because the name was in use. */
async function winners(t: ExecutionContext, attempts: readonly Promise<unknown>[]): Promise<number> {
  const results = await Promise.allSettled(attempts);
  for (const result of results) {
    if (result.status === 'fulfilled') continue;
    const { reason } = result as { reason: unknown };
    const isTold = reason instanceof KilnError && ['channelExists', 'streamExists'].includes(reason.code);
    if (!isTold && !(reason instanceof TaskExistsError)) t.fail(String((reason as Error).stack));
  }
  return results.filter(({ status }) => status === 'fulfilled').length;
}

test('of channels of both kinds that are created at once with one name on several nodes, one comes about', async (t) => {
  const [a, b, c] = (await open(t, 'a', 'b', 'c')) as [Node, Node, Node];
  for (let round = 0; round < 20; round++) {
    const name = `tv${round}`;
    t.is(await winners(t, [schedule(a, name), mux(b, name), schedule(c, name), mux(c, name)]), 1, name);
  }
  await until(
    'two nodes know of all',
    () =>
      a.tasks.definitions.in('scheduled', a.application).length +
        b.tasks.definitions.in('multiplex', b.application).length ===
      20,
  );
});

test('of a channel and a pulled stream that are created at once with one name, one comes about', async (t) => {
  const [a, b] = (await open(t, 'a', 'b')) as [Node, Node];
  for (const node of [a, b]) node.tasks.add(new SilentChannels(PULL));
  for (let round = 0; round < 20; round++) {
    const name = `tv${round}`;
    const task = { kind: PULL, vhost: 'default', app: 'app', id: name };
    const pull = b.clusterTasks.create(task, {}, { persistent: true, withinMs: 5000 });
    t.is(await winners(t, [round % 2 === 0 ? schedule(a, name) : mux(a, name), pull]), 1, name);
  }
});

test('a channel does not come about under the name of a stream that is published or about to be', async (t) => {
  const [a, b] = (await open(t, 'a', 'b')) as [Node, Node];
  const input = await publish(b);
  for (const create of [schedule, mux]) t.is(await winners(t, [create(a)]), 0);
  input.close('the publisher left');
  await until('the name is free', async () => (await winners(t, [schedule(a)])) === 1);
  for (let round = 0; round < 10; round++) t.is(await winners(t, [publish(b, `n${round}`), mux(a, `n${round}`)]), 1);
});

test('the name of a channel is not given to others, whether it is on the air or not, and free when it is deleted', async (t) => {
  const [a, b] = (await open(t, 'a', 'b')) as [Node, Node];
  await schedule(a);
  await mux(a, 'mux');
  await until('the other node knows', () => b.tasks.definitions.in('multiplex', b.application).length === 1);
  for (const name of ['tv', 'mux'])
    for (const replace of [false, true]) t.is(await winners(t, [publish(b, name, { replace })]), 0, name);
  const own = await b.names.publish(b.application, 'mux', { type: 'Multiplex', kind: 'multiplex' }, PUSHED);
  t.is(await winners(t, [publish(a, 'mux', { replace: true })]), 0, 'also while it plays');
  t.false(own.closed);
  own.close('it waits for its sources');
  const bare = b.registry.vhost('default').application('bare');
  const other = await b.names.publish(bare, 'tv', RTMP, PUSHED);
  other.close('the publisher left');
  t.true(await b.channels.remove(SCHEDULED, b.application, 'tv'));
  await setImmediate();
  (await publish(b)).close('the publisher left');
});

for (const replace of [false, true])
  test(`a channel and a ${replace ? 'replacing ' : ''}publisher of another node do not both get a name, whichever is first`, async (t) => {
    const cluster = MemoryCluster.create(t, 1);
    const [a, b] = (await openIn(t, cluster, ['a', 'b'])) as [Node, Node];
    cluster.deafen('b');

    await a.names.whileFree(a.application, 'claimed', async () => {
      t.is(await winners(t, [publish(b, 'claimed', { replace })]), 0, 'the channel has claimed it, but is not written');
    });
    (await publish(b, 'claimed', { replace })).close('the publisher left');

    await schedule(a, 'written');
    t.is(await winners(t, [publish(b, 'written', { replace })]), 0, 'it is written, but not known');

    const input = await publish(b, 'published', { replace });
    input.handsOver = true;
    await until('the other node is told', async () => {
      const meta = (await b.owner('published'))?.meta as { handsOver?: boolean } | undefined;
      return meta?.handsOver;
    });
    t.is(await winners(t, [schedule(a, 'published')]), 0, 'whoever publishes it next takes it over');
    t.false(input.closed);
  });

test('no channel is created while the store is unreachable', async (t) => {
  const cluster = MemoryCluster.create(t, 1);
  const node = channelNode(await cluster.open('a'));
  t.teardown(() => node.close());
  cluster.cutStore();
  const application = node.registry.vhost('default').application('app');
  const error = await t.throwsAsync(node.channels.create(SCHEDULED, application, 'tv', SCHEDULE));
  t.is((error as KilnError).code, 'clusterUnavailable');
});

const playing = (url: string) => {
  const item = { url, start: 0, duration: -1, fallbackOnErr: true, forwardData: false };
  return { ...SCHEDULE, programs: [{ name: '', scheduled: 0, repeat: true, items: [item] }] };
};
const filed = (kind: string, id: string) => ({ kind, vhost: 'default', app: 'files', id });

test('a loop through a channel that only a file of another node defines is refused, and seen where it came about', async (t) => {
  const [a, b, c] = (await open(t, 'a', 'b', 'c')) as [Node, Node, Node];
  b.tasks.offer(filed('scheduled', 'one'), playing('stream://default/files/two'), '1');
  c.tasks.offer(filed('scheduled', 'two'), playing('stream://default/files/three'), '1');
  const application = a.registry.vhost('default').application('files');
  const create = (name: string, url: string) => a.channels.create(SCHEDULED, application, name, playing(url));
  const { message } = await t.throwsAsync(create('three', 'stream://default/files/one'));
  const chain = 'default/files/three -> default/files/one -> default/files/two -> default/files/three';
  t.is(message, `programs[0].items[0].url makes the channel play itself: ${chain}`);
  await create('three', 'stream://default/files/other');
  const change = () => a.channels.change(SCHEDULED, application, 'three', () => playing('stream://default/files/one'));
  t.is((await t.throwsAsync(change())).message, message);
  b.tasks.offer(filed('scheduled', 'one'), playing('stream://default/files/one'), '2');
  const url = { vhost: 'default', app: 'files', stream: 'one' };
  t.deepEqual(await b.graph.chain(application, 'one', url), ['default/files/one', 'default/files/one']);
  t.is(await a.graph.chain(application, 'three', url), undefined);
  await change();
  b.tasks.offer(filed('scheduled', 'one'), playing('stream://default/files/three'), '3');
  for (const node of [a, b, c])
    t.deepEqual(await until('the change is known', () => node.graph.chain(application, 'three', url)), [
      'default/files/three',
      'default/files/one',
      'default/files/three',
    ]);
  t.is(await a.graph.chain(application, 'none', url), undefined);
});

test('of channels of both kinds that files define with one name, one has it: the stored one, or the scheduled one', async (t) => {
  const [a] = (await open(t, 'a')) as [Node];
  const { application } = a;
  const { definitions } = a.tasks;
  const has = (kind: 'scheduled' | 'multiplex', name: string): boolean =>
    !isOfChannel(definitions, application, name, { type: 'Unknown', kind });
  for (const kind of [MULTIPLEX, SCHEDULED])
    definitions.offered.set(taskName(kind, application, 'news'), kind === SCHEDULED ? SCHEDULE : MUX, '1');
  t.deepEqual([has('scheduled', 'news'), has('multiplex', 'news')], [true, false]);
  t.true(isOfChannel(definitions, application, 'news', RTMP));
  t.false(isOfChannel(definitions, application, 'free', RTMP));
  await mux(a, 'tv');
  definitions.offered.set(taskName(SCHEDULED, application, 'tv'), SCHEDULE, '1');
  t.deepEqual([has('scheduled', 'tv'), has('multiplex', 'tv')], [false, true]);
});
