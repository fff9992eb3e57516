import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { controlServer, json, type Question } from '../support/access/control-server.ts';
import { h264 } from '../support/rtmp/flv-media.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { TcpProxy } from '../support/network/tcp-proxy.ts';
import { until } from '../support/time/until.ts';

interface Said {
  readonly client: { readonly address: string };
  readonly request: { readonly status: string; readonly url: string };
}

const NAMES = Array.from({ length: 12 }, (_, n) => `s${n}`);

const vhostXml = (url: string): string =>
  `<AdmissionWebhooks><ControlServerUrl>${url}</ControlServerUrl><SecretKey>x</SecretKey><Timeout>20000</Timeout>` +
  '<Enables><Providers>rtmp</Providers></Enables></AdmissionWebhooks>';
/** Longer than others wait until they close the sessions of a node that has died. */
const LONG_MS = 12_000;

async function publish(node: Kiln, name: string): Promise<RtmpClient> {
  const client = await RtmpClient.publish(name, { port: node.ports.rtmp });
  const { config, frames } = h264();
  client.metadata({ videocodecid: 7, width: 640, height: 360 });
  client.video(config, 0);
  frames.slice(0, 5).forEach((frame, at) => client.video(frame, at * 40));
  return client;
}

/** The streams that calls of a status were about, in order. */
function streams(questions: readonly Question[], status: string): string[] {
  return questions
    .map(({ body }) => (JSON.parse(body.toString()) as Said).request)
    .filter((request) => request.status === status)
    .map(({ url }) => url.split('/').at(-1) as string)
    .sort();
}

test('each opened session is closed once: of a node that is killed, that stops, and that goes on', async (t) => {
  t.timeout(300_000);
  const control = await controlServer(t, json({ allowed: true }));
  const redis = await usedRedis(t);
  const vhost = vhostXml(control.url);
  const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id, { vhost })))) as [
    Kiln,
    Kiln,
    Kiln,
  ];
  await untilStates(b, { a: 'ready', b: 'ready', c: 'ready' });
  const clients = await Promise.all(NAMES.map((name, n) => publish([a, b, c][n % 3] as Kiln, name)));
  t.teardown(() => clients.forEach((client) => client.close()));
  t.deepEqual(streams(control.questions, 'opening'), [...NAMES].sort());
  const of = (node: number): string[] => NAMES.filter((_, n) => n % 3 === node).sort();
  const closed = (...nodes: readonly number[]): Promise<unknown> =>
    until(`those of ${nodes.join()} are closed`, () => {
      const expected = nodes.flatMap(of);
      const told = streams(control.questions, 'closing');
      return expected.every((name) => told.includes(name));
    });
  a.signal('SIGKILL');
  await closed(0);
  t.deepEqual(streams(control.questions, 'closing'), of(0));
  await c.stop();
  await closed(0, 2);
  clients.forEach((client) => client.close());
  await closed(0, 1, 2);
  await b.stop();
  t.deepEqual(streams(control.questions, 'closing'), [...NAMES].sort());
  t.deepEqual(streams(control.questions, 'opening'), [...NAMES].sort());
});

long('a node that has lost Redis alone keeps its sessions, and the end of each is reported once', async (t) => {
  t.timeout(300_000);
  const control = await controlServer(t, json({ allowed: true }));
  const redis = await usedRedis(t);
  const way = await TcpProxy.open(t, redis.port);
  const vhost = vhostXml(control.url);
  const [a, b] = (await Promise.all([
    startNode(t, { url: `redis://127.0.0.1:${way.port}` }, 'a', { vhost }),
    startNode(t, redis, 'b', { vhost }),
  ])) as [Kiln, Kiln];
  await untilStates(b, { a: 'ready', b: 'ready' });
  const [staying, leaving] = (await Promise.all(['staying', 'leaving'].map((name) => publish(a, name)))) as [
    RtmpClient,
    RtmpClient,
  ];
  t.teardown(() => [staying, leaving].forEach((client) => client.close()));
  await a.liveStream('leaving');
  way.cut();
  await untilStates(b, { a: 'silent', b: 'ready' });
  await delay(LONG_MS);
  t.deepEqual(streams(control.questions, 'closing'), []);
  leaving.close();
  await until('it is told', () => streams(control.questions, 'closing').length === 1);
  way.heal();
  await untilStates(b, { a: 'ready', b: 'ready' });
  staying.close();
  await until('both are told', () => streams(control.questions, 'closing').length === 2);
  await Promise.all([a.stop(), b.stop()]);
  t.deepEqual(streams(control.questions, 'closing'), ['leaving', 'staying']);
});
