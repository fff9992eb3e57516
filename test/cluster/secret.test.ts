import test from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { clusterXml, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { freePorts } from '../support/network/ports.ts';

const IDS = ['a', 'b', 'c'] as const;
const ALL = { a: 'ready', b: 'ready', c: 'ready' };
/** What the nodes are restarted with, one after the other; they began with the former secret. */
const ROUNDS = [{ secret: 'present', previousSecret: 'former' }, { secret: 'present' }] as const;

const make = async (node: Kiln, name: string): Promise<number> =>
  (await node.api('/v1/vhosts', 'POST', [{ name, host: { names: [`${name}.example`] } }])).status;
const vhosts = async (node: Kiln): Promise<string[]> => (await node.api<string[]>('/v1/vhosts')).body.response.sort();

long('the secret is changed by restarting the nodes one by one, and the cluster is one all the time', async (t) => {
  const redis = await usedRedis(t);
  const ports = freePorts(IDS.length);
  const server = (n: number, options: Parameters<typeof clusterXml>[3]): string =>
    clusterXml(redis, IDS[n] as string, ports[n] as number, options);
  const nodes = await Promise.all(
    IDS.map((id, n) => startNode(t, redis, id, { port: ports[n] as number, secret: 'former' })),
  );
  for (const node of nodes) await untilStates(node, ALL);
  t.is(await make(nodes[0] as Kiln, 'made'), 200);
  const made = ['default', 'made'];
  for (const [round, options] of ROUNDS.entries()) {
    for (const [n, node] of nodes.entries()) {
      await node.restart({ server: server(n, options) });
      for (const each of nodes) await untilStates(each, ALL);
      const name = `by-${IDS[n]}-${round}`;
      t.is(await make(node, name), 200);
      made.push(name);
      for (const each of nodes) t.deepEqual(await vhosts(each), [...made].sort(), `${name} on all`);
      const publisher = await PictureClient.publish(node, name);
      for (const each of nodes) t.is((await each.liveStream(name)).name, name, 'calls go from node to node');
      publisher.close();
    }
  }
  for (const { log } of nodes) t.notRegex(log, /cluster\.distrusted|proof of the cluster secret|another Server\.xml/);
  const late = await startNode(t, redis, 'd', { secret: 'present' });
  t.deepEqual(await vhosts(late), [...made].sort(), 'what was written with the former secret, too');
  t.notRegex(late.log, /cluster\.distrusted/);
});

test.serial('the others report a node with another secret, in their health as well', async (t) => {
  const redis = await usedRedis(t);
  const [a] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b', { secret: 'another' })]);
  await untilStates(a, { a: 'ready' });
  // a row of another node is read with a beat
  await until('its health has it', async () => {
    const health = await fetch(`http://127.0.0.1:${a.ports.api}/readyz`);
    t.is(health.status, 200);
    const { degraded = '' } = (await health.json()) as { degraded?: string };
    return /not authenticated .* node rows 1,/.test(degraded);
  });
  await until('its log tells why', () => /what Redis has of a node is refused: b: it has no valid MAC/.test(a.log));
});
