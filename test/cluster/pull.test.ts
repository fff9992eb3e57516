import test, { type ExecutionContext } from 'ava';
import type { Kiln, KilnOptions } from '../support/kiln.ts';
import { startNode, untilStates } from '../support/nodes.ts';
import { Origin } from '../support/origin.ts';
import { RedisServer } from '../support/redis.ts';
import { until } from '../support/until.ts';

const APP = '/v1/vhosts/default/apps/app';

async function cluster(t: ExecutionContext, ids: readonly string[], options: KilnOptions = {}) {
  const redis = await RedisServer.start(t);
  const nodes = await Promise.all(ids.map((id) => startNode(t, redis, id, { ovt: true, ...options })));
  const states = Object.fromEntries(ids.map((id) => [id, 'ready']));
  for (const node of nodes) await untilStates(node, states);
  return { redis, nodes: nodes as [Kiln, ...Kiln[]] };
}

const pull = (node: Kiln, name: string, urls: readonly string[], properties: object = {}) =>
  node.api(`${APP}/streams`, 'POST', { name, urls, properties });
const list = async (node: Kiln): Promise<string[]> => [...(await node.api<string[]>(`${APP}/streams`)).body.response].sort();
const received = async (node: Kiln, name: string): Promise<number> => {
  const { status, body } = await node.api<{ totalBytesIn: number }>(`/v1/stats/current${APP.slice(3)}/streams/${name}`);
  return status === 200 ? body.response.totalBytesIn : 0;
};
/** Which node has a stream: the one that its own connection is of. */
const ownerOf = async (nodes: readonly Kiln[], name: string): Promise<Kiln | undefined> => {
  for (const node of nodes) {
    const line = node.running && node.log.split('\n').findLast((one) => one.includes('this node runs a task') && one.includes(`"${name}"`));
    if (line) return node;
  }
  return undefined;
};

test('a stream that is pulled through one node is on all', async (t) => {
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
    t.deepEqual(body.response.outputs.map(({ name }) => name), ['copy']);
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
