import test, { type ExecutionContext } from 'ava';
import { signedPolicy } from '../../../../../src/access/policy/guard.ts';
import { signUrl } from '../../../../../src/access/policy/sign.ts';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown, type LlhlsNode } from '../../../../support/hls/llhls-nodes.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { urisOf } from '../../../../support/hls/playlist-uris.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const TRACKS = [videoTrack(), audioTrack()];
const EVERYBODY = { crossDomains: { url: ['*'] } };
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 'of these nodes',
  algorithm: 'sha1',
} as const;

/** Tells the cluster how a node is. */
function describe({ id, cluster }: LlhlsNode, full: boolean): void {
  const info = { addresses: { llhls: [] }, publicUrl: `http://${id}.test:3333` };
  cluster.describe({ load: 0, full, info });
}

/** Nodes of which the first one is full and has the stream. */
async function open(t: ExecutionContext, setup: LlhlsSetup = {}) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const llhls = { segmentDuration: 0.5, chunkDuration: 0.25, ...EVERYBODY, ...setup.llhls };
  const openOne = (id: string) => openLlhlsNode(t, nodes, id, { ...setup, llhls });
  const [a, b] = await Promise.all([openOne('a'), openOne('b')]);
  const { output } = await a.goLive(TRACKS);
  await untilKnown(b, a);
  feeder(output)(3.1);
  describe(a, true);
  describe(b, false);
  const isFull = (id: string, full: boolean) => a.cluster.nodes().some((row) => row.id === id && row.full === full);
  await until('the nodes know each other', () => isFull('a', true) && isFull('b', false));
  return { a, b, output };
}

/** Follows an answer to the other node. */
async function follow(node: LlhlsNode, { headers }: { headers: Record<string, unknown> }) {
  const url = new URL(String(headers['location']));
  const { host, pathname, search } = url;
  return { url, answer: await node.get(pathname + search, { host, origin: 'null' }) };
}

test('a full node sends players to another one, which serves them and what they ask for from then on', async (t) => {
  const { a, b, output } = await open(t);
  const sent = await a.get(`${MASTER}?x=1&session=me`, { host: 'live.test', origin: 'http://page.test' });
  t.is(sent.statusCode, 307);
  t.is(sent.body, '');
  t.like(sent.headers, { 'access-control-allow-origin': '*', 'cache-control': 'no-cache, no-store' });
  t.is(output.sessions.size, 0);
  t.is(a.publisher.counts.requests.get('master')?.get(307), 1);
  const { url, answer } = await follow(b, sent);
  t.is(url.origin, 'http://b.test:3333');
  t.like(answer, { statusCode: 200 });
  t.is(answer.headers['access-control-allow-origin'], '*');
  t.notRegex(answer.body, /redirected/i);
  t.regex(answer.body, /x=1&session=me/);
  for (const child of urisOf(answer.body, MASTER)) t.is((await b.get(child)).statusCode, 200);
  t.deepEqual([...output.sessions.keys()], ['me']);
});

test('a redirected player is served, though that node is full by now, too', async (t) => {
  const { a, b } = await open(t);
  const sent = await a.get(MASTER);
  describe(b, true);
  describe(a, false);
  await until('b is full', () => b.cluster.nodes().every(({ id, full }) => full === (id === 'b')));
  t.is((await b.get(MASTER)).statusCode, 307);
  t.is((await follow(b, sent)).answer.statusCode, 200);
});

test('a player in the middle of a stream goes on where it is', async (t) => {
  const { a, b } = await open(t);
  describe(a, false);
  await until('a has room', () => a.cluster.nodes().every(({ full }) => !full));
  const children = await a.children();
  describe(a, true);
  await until('a is full', () => a.cluster.nodes().some(({ full }) => full));
  for (const child of children) t.is((await a.get(child)).statusCode, 200);
  t.is((await b.get(MASTER)).statusCode, 200);
  t.is(a.sessions().length, 1);
  t.is(b.sessions().length, 1);
});

test('caches ask, and pages of certain origins, where they asked first', async (t) => {
  for (const llhls of [{ originMode: true }, { crossDomains: { url: ['http://page.test'] } }]) {
    const { a } = await open(t, { llhls });
    t.is((await a.get(MASTER, { host: 'live.test' })).statusCode, 200);
  }
});

test('the virtual host and the signature are those of the URL that was asked first', async (t) => {
  const names = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature' };
  const vhost = {
    host: { names: ['live.test'] },
    signedPolicy: { ...names, secretKey: SIGNING.secretKey, enables: { providers: '', publishers: 'llhls' } },
  };
  // what comes with the name of a node is another one's
  const { a, b } = await open(t, { vhost, vhosts: { other: {} }, access: { guards: [signedPolicy(() => [])] } });
  const signed = new URL(signUrl(`http://live.test:80${MASTER}`, { url_expire: Date.now() + 60_000 }, SIGNING));
  const sent = await a.get(signed.pathname + signed.search, { host: 'live.test:80' });
  t.is(sent.statusCode, 307);
  const { url, answer } = await follow(b, sent);
  t.is(answer.statusCode, 200, answer.body);
  for (const child of urisOf(answer.body, MASTER)) {
    t.is((await b.get(child, { host: url.host })).statusCode, 200);
  }
  const { pathname, search } = signed;
  t.is((await b.get(pathname + search, { host: url.host })).statusCode, 404);
  const unsigned = await a.get(MASTER, { host: 'live.test:80' });
  t.is((await follow(b, unsigned)).answer.statusCode, 401);
});
