import test, { type ExecutionContext } from 'ava';
import type { Kiln, KilnOptions } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { Origin } from '../support/ovt/origin.ts';
import { until } from '../support/time/until.ts';

const APP = '/v1/vhosts/default/apps/app';

async function cluster(t: ExecutionContext, ids: readonly string[], options: KilnOptions = {}) {
  const redis = await usedRedis(t);
  const nodes = await Promise.all(ids.map((id) => startNode(t, redis, id, { ovt: true, ...options })));
  const states = Object.fromEntries(ids.map((id) => [id, 'ready']));
  for (const node of nodes) await untilStates(node, states);
  return { redis, nodes: nodes as [Kiln, Kiln, Kiln] };
}

const pull = (node: Kiln, name: string, urls: readonly string[], properties: object = {}) =>
  node.api(`${APP}/streams`, 'POST', { name, urls, properties });
const list = async (node: Kiln): Promise<string[]> =>
  [...(await node.api<string[]>(`${APP}/streams`)).body.response].sort();
const received = async (node: Kiln, name: string): Promise<number> => {
  const { status, body } = await node.api<{ totalBytesIn: number }>(`/v1/stats/current${APP.slice(3)}/streams/${name}`);
  return status === 200 ? body.response.totalBytesIn : 0;
};
/** How many streams each node has of its own. */
const counts = async (node: Kiln): Promise<Record<string, number>> =>
  Object.fromEntries(
    [...(await nodesOf(node))].map(([id, { state, streams }]) => [id, state === 'lost' ? 0 : streams]),
  );
const sum = (all: Record<string, number>): number => Object.values(all).reduce((a, b) => a + b, 0);
const NAMES = ['p0', 'p1', 'p2', 'p3', 'p4', 'p5'];

/** Waits until more comes in of all streams. */
async function untilFlowing(node: Kiln, names: readonly string[]): Promise<void> {
  const before = new Map<string, number>();
  await until(`${names.join()} flow`, async () => {
    for (const name of names) {
      const bytes = await received(node, name);
      const first = before.get(name);
      if (bytes > 0 && (first === undefined || bytes < first)) before.set(name, bytes);
      if (first === undefined || bytes <= first) return false;
    }
    return true;
  });
}

test.serial('a stream that is pulled through one node is on all', async (t) => {
  const origin = await Origin.start(t, 'src');
  const { nodes } = await cluster(t, ['a', 'b', 'c']);
  const made = await pull(nodes[0], 'copy', [origin.url('src')], { relay: true });
  t.is(made.status, 201, JSON.stringify(made.body));
  t.deepEqual(made.body as object, { message: 'Created', statusCode: 201 });
  for (const node of nodes) {
    t.deepEqual(await list(node), ['copy']);
    const { status, body } = await node.stream('copy');
    t.is(status, 200);
    t.like(body.response, { name: 'copy', input: { sourceType: 'Ovt', sourceUrl: origin.url('src') } });
    t.deepEqual(
      body.response.outputs.map(({ name }) => name),
      ['copy'],
    );
    t.is((await pull(node, 'copy', [origin.url('src')])).status, 409);
  }
  t.is(await origin.pullers('src'), 1);
  t.is((await pull(nodes[1], 'none', [origin.url('none')])).status, 502);
  t.is((await pull(nodes[1], 'none', ['rtsp://127.0.0.1/x'])).status, 502);
  t.deepEqual(await list(nodes[2]), ['copy']);
  t.is((await nodes[1].api(`${APP}/streams/copy`, 'DELETE')).status, 200);
  for (const node of nodes) t.deepEqual(await list(node), []);
  await until('the origin is left', async () => (await origin.pullers('src')) === 0);
});

long(
  'streams that a killed or drained node pulled go on elsewhere, and persistent ones come back after all nodes',
  async (t) => {
    const origin = await Origin.start(t, 'src');
    const {
      redis,
      nodes: [a, b, c],
    } = await cluster(t, ['a', 'b', 'c'], { storage: 'api.json' });
    for (const name of NAMES) {
      const made = await pull(a, name, [origin.url('src')], { relay: true, persistent: true });
      t.is(made.status, 201, JSON.stringify(made.body));
    }
    await until('all are counted', async () => sum(await counts(a)) === NAMES.length);
    const before = await counts(a);
    const [most] = Object.entries(before).sort(([, x], [, y]) => y - x)[0] as [string, number];
    const victim = { a, b, c }[most] as Kiln;
    const others = [a, b, c].filter((node) => node !== victim) as [Kiln, Kiln];
    victim.signal('SIGKILL');
    await victim.exited();
    const killed = performance.now();
    await until(
      'all are elsewhere',
      async () => (await origin.pullers('src')) === NAMES.length && sum(await counts(others[0])) === NAMES.length,
    );
    t.log(`elsewhere after ${Math.round(performance.now() - killed)} ms`);
    await untilFlowing(others[1], NAMES);
    t.deepEqual(await list(others[0]), NAMES);
    await victim.restart();
    await untilStates(others[0], { a: 'ready', b: 'ready', c: 'ready' });

    const [drained] = Object.entries(await counts(others[0])).sort(([, x], [, y]) => y - x)[0] as [string, number];
    t.is((await others[1].api(`/v1/cluster/nodes/${drained}:drain`, 'POST')).status, 200);
    await until('it has none', async () => {
      const now = await counts(others[0]);
      return now[drained] === 0 && sum(now) === NAMES.length;
    });
    await untilFlowing(others[0], NAMES);
    t.is((await others[1].api(`/v1/cluster/nodes/${drained}:undrain`, 'POST')).status, 200);

    origin.end('src');
    await until('the origin has nothing', async () => (await origin.kiln.stream('src')).status === 404);
    t.deepEqual(await list(a), NAMES, 'they stay listed');
    for (const node of [a, b, c]) node.signal('SIGKILL');
    await Promise.all([a, b, c].map((node) => node.exited()));
    await redis.kill();
    await redis.run();
    await Promise.all([a, b, c].map((node) => node.restart()));
    await until('they are listed again', async () => (await list(b)).length === NAMES.length);
    for (const name of NAMES) await until(`${name} is shown`, async () => (await c.stream(name)).status === 200);
    await origin.publish('src');
    await untilFlowing(c, NAMES);
    for (const name of NAMES) t.is((await a.api(`${APP}/streams/${name}`, 'DELETE')).status, 200);
    for (const node of [a, b, c]) t.deepEqual(await list(node), []);
    await until('the origin is left', async () => (await origin.pullers('src')) === 0);
  },
);

long(
  'a stream goes on from another URL when its origin dies or is silent, and ends with its viewers or its source',
  async (t) => {
    const [one, two] = await Promise.all([Origin.start(t, 'src'), Origin.start(t, 'src')]);
    const {
      nodes: [a, b],
    } = await cluster(t, ['a', 'b']);
    const made = await pull(a, 'many', [one.url('none'), one.url('src'), two.url('src')], {
      relay: true,
      noInputFailoverTimeoutMs: 4000,
      retryCount: 3,
    });
    t.is(made.status, 201);
    const url = async (): Promise<string | undefined> => (await b.stream('many')).body.response?.input.sourceUrl;
    t.is(await url(), one.url('src'));
    one.kiln.signal('SIGSTOP');
    await until('it is pulled from the other', async () => (await url()) === two.url('src'));
    await untilFlowing(a, ['many']);
    one.kiln.signal('SIGCONT');
    await until('the first has it again', async () => (await one.kiln.stream('src')).status === 200);
    const [owner] = Object.entries(await counts(a)).find(([, count]) => count > 0) ?? [];
    t.is((await a.api(`/v1/cluster/nodes/${owner}:drain`, 'POST')).status, 200);
    await until('it is handed over', async () => {
      const now = await counts(a);
      return now[owner as string] === 0 && sum(now) === 1;
    });
    await untilFlowing(a, ['many']);
    t.is(await url(), two.url('src'), 'it goes on from where it came from');
    t.is((await a.api(`/v1/cluster/nodes/${owner}:undrain`, 'POST')).status, 200);
    await until('both take streams', async () =>
      [...(await nodesOf(a)).values()].every(({ state }) => state === 'ready'),
    );
    const unused = await pull(b, 'unused', [two.url('src')], { relay: true, unusedStreamDeletionTimeoutMs: 1000 });
    t.is(unused.status, 201);
    await until('it is gone', async () => !(await list(a)).includes('unused'));
    const ended = await pull(b, 'ended', [one.url('src')], { relay: true });
    t.is(ended.status, 201);
    one.end('src');
    await until('it has ended', async () => !(await list(a)).includes('ended'));
    t.deepEqual(await list(b), ['many']);
  },
);
