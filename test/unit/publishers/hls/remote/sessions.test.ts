import test, { type ExecutionContext } from 'ava';
import { Flow } from '../../../../../src/core/counters.ts';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown } from '../../../../support/hls/llhls-nodes.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

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
  return { nodes, a, b, c, input, output };
}

test('a player that is bounced from node to node is one session, with all its bytes', async (t) => {
  const { a, b, c, output } = await live(t);
  const urls = await c.children();
  const [known] = c.sessions();
  await until('its master playlist is counted', () => (known?.out.totalBytes ?? 0) > 0);
  let bytes = known?.out.totalBytes ?? 0;
  const byNode = new Map([
    [a, 0],
    [b, 0],
    [c, bytes],
  ]);
  for (let round = 0; round < 4; round++) {
    for (const node of [b, a, c]) {
      for (const url of urls) {
        const { statusCode, rawPayload } = await node.get(url);
        t.is(statusCode, 200);
        bytes += rawPayload.length;
        byNode.set(node, (byNode.get(node) ?? 0) + rawPayload.length);
      }
    }
  }
  t.deepEqual(c.sessions(), known === undefined ? [] : [known]);
  t.is(c.application.counters.publishers.llhls, 1);
  await until('all that was served is counted', () => known?.out.totalBytes === bytes);
  t.is(c.registry.counters.out.totalBytes, bytes);
  for (const node of [a, b]) t.is(node.registry.counters.out.totalBytes, 0, 'and nowhere else');
  for (const node of [a, b]) t.is(node.registry.counters.totalConnections, 0);
  for (const [{ registry }, sent] of byNode) t.is(registry.sentBytes, sent, 'each node knows what it has sent itself');
  t.true(output.watched);
});

test('a player of another node is counted from its master playlist on, once, and until it has been silent for three targets', async (t) => {
  const { b, output } = await live(t, { llhls: { segmentDuration: 0.5 } });
  const urls = await b.children();
  t.is(b.sessions().length, 1, 'at once');
  t.true(output.watched);
  await b.get(urls[0] as string);
  t.is(b.sessions().length, 1);
  await until('it has been silent', () => b.sessions().length === 0);
  await until('nobody watches the stream', () => !output.watched);
  t.is((await b.get(urls[0] as string)).statusCode, 200);
  t.is(b.sessions().length, 1, 'it is back');
  t.true(output.watched);
});

test('a player that is thrown out is refused everywhere, by its URL and by its name', async (t) => {
  const { a, b, c, output } = await live(t);
  const [url = ''] = await b.children(`${MASTER}?session=somebody`);
  const [other = ''] = await b.children();
  for (const node of [a, b, c]) for (const one of [url, other]) t.is((await node.get(one)).statusCode, 200);
  t.deepEqual([...output.sessions.keys()], ['somebody']);
  t.is(b.sessions().length, 1);
  output.sessions.get('somebody')?.kick();
  for (const node of [a, b, c]) {
    await until(`${node.id} refuses it`, async () => (await node.get(url)).statusCode === 401);
    t.is((await node.get(`${MASTER}?session=somebody`)).statusCode, 401);
    t.is((await node.get(other)).statusCode, 200);
  }
  t.is(output.sessions.size, 0);
  b.sessions()[0]?.kick();
  for (const node of [a, b, c])
    await until(`${node.id} refuses the other one`, async () => (await node.get(other)).statusCode === 401);
  t.is(b.sessions().length, 0);
});

test('a kicked player is rejected by a restarted node, and by others when its own node is lost', async (t) => {
  const { nodes, a, b, c, input } = await live(t);
  const [url = ''] = await b.children();
  const [fine = ''] = await b.children();
  // as the API tells every node
  const [{ id = '' } = {}] = b.sessions();
  for (const session of b.sessions()) if (session.id === id) session.kick();
  input.kicked.add(id);
  t.is((await b.get(url)).statusCode, 401);
  nodes.kill('b');
  await until('it is known to be lost', () => c.cluster.nodes().every((row) => row.id !== 'b' || row.state === 'lost'));
  for (const node of [a, c]) {
    t.is((await node.get(url)).statusCode, 401, node.id);
    t.is((await node.get(fine)).statusCode, 200, node.id);
  }
  t.is(a.sessions().length, 1, 'the owner of the stream counts whose node is lost');
  const again = await openLlhlsNode(t, nodes, 'b', { llhls: LLHLS });
  await untilKnown(again, a);
  t.is((await again.get(url)).statusCode, 401);
  t.is((await again.get(fine)).statusCode, 200);
  t.is(again.sessions().length, 1);
  await until('it is counted there alone', async () => {
    for (const node of [a, again]) t.is((await node.get(fine)).statusCode, 200);
    return a.sessions().length === 0;
  });
  t.is(again.sessions().length, 1);
});

test('a kicked player is rejected by nodes that do not reach the one that counts it', async (t) => {
  const { a, b, c } = await live(t);
  const [url = ''] = await c.children();
  for (const node of [a, b]) t.is((await node.get(url)).statusCode, 200);
  const [{ id = '' } = {}] = c.sessions();
  c.silence();
  // as the API tells every node
  for (const { application } of [a, b, c]) for (const { kicked } of application.views('stream')) kicked.add(id);
  for (const node of [a, b]) await until(`${node.id} refuses it`, async () => (await node.get(url)).statusCode === 401);
});

test('a player of a node that had the stream is counted there still when another one has taken it', async (t) => {
  const { a, b, c } = await live(t);
  const [url = ''] = await a.children();
  t.is(a.sessions().length, 1);
  const { output } = await b.goLive([videoTrack(), audioTrack()], 'stream', true);
  feeder(output)(3.1);
  for (const node of [a, c]) await untilKnown(node, b);
  await until('it goes on', async () => (await c.get(url)).statusCode === 200 && a.sessions().length === 1);
  t.is(output.sessions.size, 0);
});

test('requests for files that do not exist make a node no viewer', async (t) => {
  const { b, output } = await live(t);
  const [url = ''] = await b.children();
  await until('nobody watches the stream', () => !output.watched);
  for (const path of ['/app/stream/other.m3u8', url.replace(/[^/]*$/, 'chunklist_9_video_x_llhls.m3u8')])
    t.is((await b.get(path)).statusCode, 404);
  t.is((await b.get(url.replace(/[^/]*$/, 'part_0_9_0_video_x_llhls.m4s'))).statusCode, 404);
  t.false(output.watched);
  t.is((await b.get(url)).statusCode, 200);
  t.true(output.watched);
  t.false(output.takenBesidePlaylists);
});

test('the owner counts players that their node has admitted without a MaxConnection that was set since', async (t) => {
  const { nodes, a, b } = await live(t);
  const [url = ''] = await b.children();
  t.is(b.sessions().length, 1);
  nodes.kill('b');
  const again = await openLlhlsNode(t, nodes, 'b', { llhls: { ...LLHLS, maxConnection: 10 } });
  await untilKnown(again, a);
  t.is((await again.get(url)).statusCode, 200);
  t.is(again.sessions().length, 0);
  t.is(a.sessions().length, 1);
});

test('the owner counts players while nodes have different versions, since others may not read a token', async (t) => {
  const { a, b, c } = await live(t);
  c.cluster.describe({ load: 0, full: false, info: { version: 'before' } });
  await until('b knows', () => b.cluster.nodes().some(({ info }) => info.version === 'before'));
  const [url = ''] = await b.children();
  for (const node of [a, b, c]) t.is((await node.get(url)).statusCode, 200);
  t.is(a.sessions().length, 1);
  for (const node of [b, c]) t.is(node.sessions().length, 0);
});

test('a node that does not answer for a player that it counts keeps that player from no other node', async (t) => {
  const { a, b, c } = await live(t);
  const urls = await c.children();
  c.silence();
  for (const node of [a, b]) for (const url of urls) t.is((await node.get(url)).statusCode, 200, node.id);
  const visits = b.asked.filter((path) => path.includes('/visits/')).length;
  for (const url of urls) t.is((await b.get(`${url}?_HLS_msn=0`)).statusCode, 200);
  t.is(b.asked.filter((path) => path.includes('/visits/')).length, visits, 'and holds up nobody again');
  t.is(c.sessions().length, 1);
});

test('players are no more counted where their application has been closed', async (t) => {
  const { b } = await live(t);
  const [url = ''] = await b.children();
  t.is(b.registry.counters.publishers.llhls, 1);
  b.application.close('it was deleted');
  t.is(b.registry.counters.publishers.llhls, 0);
  t.not((await b.get(url)).statusCode, 200);
  t.is(b.sessions().length, 0);
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

test('players of a node cost the owner of their stream nothing each', async (t) => {
  const { b, output } = await live(t);
  const urls = await Promise.all(Array.from({ length: 100 }, async () => (await b.children())[0] as string));
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(urls.map((url) => b.get(url)));
    t.true(answers.every(({ statusCode }) => statusCode === 200));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  t.is(b.sessions().length, 100);
  t.is(output.sessions.size, 0);
  t.true(output.watched);
  t.is(output.viewersElsewhere, 100);
  t.deepEqual(
    b.asked.filter((path) => !/\/(?:master|chunklist)\//.test(path)),
    [],
  );
  t.true(b.asked.length < 20, `${b.asked.length} calls`);
});

test('players who come together with MaxConnection are reported at once, in few calls, and their traffic once a second', async (t) => {
  const { b, output } = await live(t, { llhls: { maxConnection: 1000 } });
  const urls = await Promise.all(Array.from({ length: 100 }, async () => (await b.children())[0] as string));
  const masters = b.asked.filter((path) => path.includes('/master/')).length;
  t.true(masters <= 100);
  const answers = await Promise.all(urls.map((url) => b.get(url)));
  t.true(answers.every(({ statusCode }) => statusCode === 200));
  t.is(output.sessions.size, 100);
  const reports = b.asked.filter((path) => path.includes('/report/')).length;
  t.true(reports <= 5, `${reports} calls`);
});

test('nodes with OriginMode count no player, and every byte', async (t) => {
  const { b, output } = await live(t, { llhls: { originMode: true } });
  const [url = ''] = await b.children();
  const { rawPayload } = await b.get(url);
  await until('it is counted', () => output.counters.out.totalBytes > rawPayload.length);
  t.is(output.sessions.size, 0);
});
