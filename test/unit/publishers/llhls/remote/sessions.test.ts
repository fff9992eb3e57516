import test, { type ExecutionContext } from 'ava';
import { Flow } from '../../../../../src/core/counters.ts';
import type { LlhlsSetup } from '../../../../support/llhls.ts';
import { feeder, openLlhlsNode, untilKnown } from '../../../../support/llhls-nodes.ts';
import { audioTrack, videoTrack } from '../../../../support/packets.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { until } from '../../../../support/until.ts';
import { virtualTime } from '../../../../support/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };

/** A stream of node `a` that can be played from `b` and `c`. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = (id: string) => openLlhlsNode(t, nodes, id, { ...setup, llhls: { ...LLHLS, ...setup.llhls } });
  const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')]);
  const { input, output } = await a.goLive([videoTrack(), audioTrack()]);
  for (const node of [b, c]) await untilKnown(node, a);
  feeder(output)(3.1);
  return { a, b, c, input, output };
}

test('a player that is bounced from node to node is one session, with all its bytes', async (t) => {
  const { a, b, c, output } = await live(t);
  const urls = await c.children();
  const [known] = output.sessions.values();
  await until('its master playlist is counted', () => (known?.out.totalBytes ?? 0) > 0);
  let bytes = known?.out.totalBytes ?? 0;
  for (let round = 0; round < 4; round++) {
    for (const node of [b, a, c]) {
      for (const url of urls) {
        const { statusCode, rawPayload } = await node.get(url);
        t.is(statusCode, 200);
        bytes += rawPayload.length;
      }
    }
  }
  t.is(output.sessions.size, 1);
  t.is(output.counters.publishers.llhls, 1);
  const [session] = output.sessions.values();
  t.is(session, known);
  await until('all that was served is counted', () => session?.out.totalBytes === bytes);
  t.true(output.counters.out.totalBytes >= bytes);
  for (const node of [b, c]) t.is(node.registry.counters.out.totalBytes, 0, 'and nowhere else');
  for (const node of [b, c]) t.is(node.registry.counters.totalConnections, 0);
});

test('a player of another node is counted from its master playlist on, once, and until it has been silent for three targets', async (t) => {
  const { b, output } = await live(t, { llhls: { segmentDuration: 0.5 } });
  const urls = await b.children();
  t.is(output.sessions.size, 1, 'at once');
  await b.get(urls[0] as string);
  t.is(output.sessions.size, 1);
  await until('it has been silent', () => output.sessions.size === 0);
  t.is((await b.get(urls[0] as string)).statusCode, 200);
  await until('it is back', () => output.sessions.size === 1);
});

test('a player that is thrown out is refused everywhere, by its URL and by its name', async (t) => {
  const { a, b, c, output } = await live(t);
  const [url = ''] = await b.children(`${MASTER}?session=somebody`);
  const [other = ''] = await b.children();
  for (const node of [a, b, c]) for (const one of [url, other]) t.is((await node.get(one)).statusCode, 200);
  t.deepEqual([...output.sessions.keys()].length, 2);
  output.sessions.get('somebody')?.kick();
  for (const node of [a, b, c]) {
    await until(`${node.id} refuses it`, async () => (await node.get(url)).statusCode === 401);
    t.is((await node.get(`${MASTER}?session=somebody`)).statusCode, 401);
    t.is((await node.get(other)).statusCode, 200);
  }
  t.is(output.sessions.size, 1);
});

test('a wrong token is refused without a call', async (t) => {
  const { b } = await live(t);
  const [url = ''] = await b.children();
  const asked = b.asked.length;
  t.like(await b.get(url.replace(/\/[\w-]{60,}\//, `/${'x'.repeat(80)}/`)), { statusCode: 401, body: '' });
  t.is(b.asked.length, asked);
});

test('MaxConnection holds for all nodes together', async (t) => {
  const { a, b, c } = await live(t, { llhls: { maxConnection: 2 } });
  const [first = ''] = await b.children();
  const [second = ''] = await c.children();
  t.is((await b.get(first)).statusCode, 200);
  t.is((await c.get(second)).statusCode, 200);
  for (const node of [a, b, c]) {
    t.is((await node.get(MASTER)).statusCode, 503);
    t.is((await node.get(first)).statusCode, 200);
  }
});

test('the name of a session is one for all nodes', async (t) => {
  const { a, b, c, output, application } = await live(t).then((nodes) => ({
    ...nodes,
    application: nodes.a.application,
  }));
  const named = `${MASTER}?session=somebody`;
  const [first = ''] = await b.children(named);
  t.is((await b.get(first)).statusCode, 200);
  const asked = Date.now();
  await until('the clock goes on', () => Date.now() > asked);
  const [second = ''] = await c.children(named);
  t.is((await c.get(second)).statusCode, 200);
  t.deepEqual([...output.sessions.keys()], ['somebody']);
  await until('the older token has ended', async () => (await b.get(first)).statusCode === 401);
  output.sessions.get('somebody')?.kick();
  const other = application.addOutput(output.input, 'other');
  const leave = other.addSession({ id: 'another', kind: 'webrtc', createdTime: 0, out: new Flow(0), kick: () => {} });
  for (const node of [a, b, c]) t.is((await node.get(`${MASTER}?session=another`)).statusCode, 409);
  leave();
  t.is((await c.get(`${MASTER}?session=another`)).statusCode, 200);
});

test('a token whose name another viewer has is good again when that one has left', async (t) => {
  const { a, b, output } = await live(t, { llhls: { segmentDuration: 0.5 } });
  const [url = ''] = await b.children(`${MASTER}?session=somebody`);
  t.deepEqual([...output.sessions.keys()], ['somebody'], 'it is counted');
  await until('it has been silent', () => output.sessions.size === 0);
  const other = a.application.addOutput(output.input, 'other');
  const leave = other.addSession({ id: 'somebody', kind: 'webrtc', createdTime: 0, out: new Flow(0), kick: () => {} });
  t.is((await b.get(url)).statusCode, 401);
  leave();
  t.is((await a.get(url)).statusCode, 200);
  await until('so it is here', async () => (await b.get(url)).statusCode === 200);
});

test('players who come at once are told of at once, in few calls; what they take is told once a second', async (t) => {
  const { b, output } = await live(t);
  const urls = await Promise.all(Array.from({ length: 100 }, async () => (await b.children())[0] as string));
  const masters = b.asked.filter((path) => path.includes('/master/')).length;
  t.true(masters <= 100);
  const answers = await Promise.all(urls.map((url) => b.get(url)));
  t.true(answers.every(({ statusCode }) => statusCode === 200));
  t.is(output.sessions.size, 100);
  const reports = b.asked.filter((path) => path.includes('/report/')).length;
  t.true(reports <= 5, `${reports} calls`);
});

test('OriginMode: nobody is counted, and every byte is', async (t) => {
  const { b, output } = await live(t, { llhls: { originMode: true } });
  const [url = ''] = await b.children();
  const { rawPayload } = await b.get(url);
  await until('it is counted', () => output.counters.out.totalBytes > rawPayload.length);
  t.is(output.sessions.size, 0);
});
