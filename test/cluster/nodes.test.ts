import test from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { until } from '../support/time/until.ts';

const publish = (node: Kiln, key: string): Promise<PictureClient> => PictureClient.publish(node, key);
const readyz = async (node: Kiln): Promise<number> => (await fetch(`http://127.0.0.1:${node.ports.api}/readyz`)).status;
const post = async (node: Kiln, path: string): Promise<number> =>
  (await node.api(`/v1/cluster/nodes/${path}`, 'POST')).status;

test.serial(
  'nodes know each other: those that leave are gone, those that were killed lost until they are back',
  async (t) => {
    const redis = await usedRedis(t);
    const [a, b, c] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b'), startNode(t, redis, 'c')]);
    for (const node of [a, b, c]) await untilStates(node, { a: 'ready', b: 'ready', c: 'ready' });
    await until('the node has told of itself', async () => (await nodesOf(a)).get('b')?.version !== '');
    const before = (await nodesOf(a)).get('b');
    t.deepEqual(before?.addresses.rtmp, [`rtmp://127.0.0.1:${b.ports.rtmp}`]);
    t.deepEqual(before?.addresses.api, [`http://127.0.0.1:${b.ports.api}`]);
    b.signal('SIGKILL');
    await b.exited();
    await untilStates(a, { a: 'ready', b: 'lost', c: 'ready' });
    await b.restart();
    for (const node of [a, b, c]) await untilStates(node, { a: 'ready', b: 'ready', c: 'ready' });
    t.not((await nodesOf(c)).get('b')?.incarnation, before?.incarnation);
    c.signal('SIGTERM');
    t.is(await c.exited(), 0);
    await untilStates(a, { a: 'ready', b: 'ready' });
  },
);

test.serial('a node that is drained through another takes no new stream and keeps those that it has', async (t) => {
  const redis = await usedRedis(t);
  const [a, b] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b')]);
  await untilStates(a, { a: 'ready', b: 'ready' });
  const present = await publish(b, 'present');
  t.is(await post(a, 'b:drain'), 200);
  await until('it is not ready', async () => (await readyz(b)) === 503);
  await untilStates(a, { a: 'ready', b: 'draining' });
  await t.throwsAsync(publish(b, 'new'), { message: /draining/ });
  t.false(present.ended);
  t.is(await readyz(a), 200);
  t.is(await post(a, 'b:undrain'), 200);
  await until('it is ready again', async () => (await readyz(b)) === 200);
  const next = await publish(b, 'new');
  t.is(await post(a, 'none:drain'), 404);
  for (const client of [present, next]) client.close();
});

long('nodes that were started with different Server.xml say so', async (t) => {
  const redis = await usedRedis(t);
  const [a, b, other] = await Promise.all([
    startNode(t, redis, 'a'),
    startNode(t, redis, 'b'),
    startNode(t, redis, 'other', { hostName: 'example.com' }),
  ]);
  const differing = async (node: Kiln): Promise<string> =>
    [...(await nodesOf(node)).values()]
      .filter(({ configDiffers }) => configDiffers)
      .map(({ id }) => id)
      .sort()
      .join();
  await until('a sees it', async () => (await differing(a)) === 'other');
  await until('it sees both', async () => (await differing(other)) === 'a,b');
  await until(
    'it is in the log',
    () => a.log.includes('another Server.xml') && other.log.includes('another Server.xml'),
  );
  await until('b sees it', async () => (await differing(b)) === 'other');
  for (const node of [a, b, other])
    t.deepEqual(
      node.log.split('\n').filter((line) => line.includes('a cluster operation failed')),
      [],
    );
});

long('a node whose id another process takes ends, and that one has its place', async (t) => {
  const redis = await usedRedis(t);
  const first = await startNode(t, redis, 'a');
  const watching = await startNode(t, redis, 'b');
  const { incarnation } = (await nodesOf(watching)).get('a') ?? {};
  const second = await startNode(t, redis, 'a');
  t.is(await first.exited(), 1);
  t.regex(first.log, /another process uses the id/);
  await untilStates(watching, { a: 'ready', b: 'ready' });
  const now = await until('it has told of itself', async () => {
    const row = (await nodesOf(watching)).get('a');
    return row?.incarnation !== incarnation && row?.addresses.rtmp !== undefined && row;
  });
  t.deepEqual(now.addresses.rtmp, [`rtmp://127.0.0.1:${second.ports.rtmp}`]);
});

long('one of several processes that start with one node id at once stays; the others say why they end', async (t) => {
  const redis = await usedRedis(t);
  const started = await Promise.allSettled([1, 2, 3].map(() => startNode(t, redis, 'a')));
  const ended = started.flatMap((one) => (one.status === 'rejected' ? [(one.reason as Error).message] : []));
  const nodes = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  await until('one is left', () => nodes.filter(({ running }) => running).length === 1);
  ended.push(...nodes.filter(({ running }) => !running).map(({ log }) => log));
  t.is(ended.length, 2);
  for (const log of ended) {
    t.regex(log, /another process uses the id of this node/);
    t.notRegex(log, /ReferenceError/);
  }
});
