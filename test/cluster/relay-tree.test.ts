import { createHash } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { joinKey, weighing } from '#cluster';
import { toSeconds } from '../../src/core/timebase.ts';
import { aac } from '../support/media/aac.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { playOvt, type Recorder } from '../support/ovt/ovt.ts';
import { sendersOf } from '../support/tree/senders.ts';
import { until } from '../support/time/until.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const SCENE = { video: await h264({ seconds: 2, gop: 60, kbit: 200 }), audio: await aac(440) };
const SHORT_GOPS = { ...SCENE, video: await h264({ seconds: 2, gop: 30, kbit: 200 }) };
const FRAME_SECONDS = 1 / 30;
const OWNER = 'owner';
const OPTIONS = { publishers: '<OVT/>', relayFanOut: 1, nodeXml: '<Limits><Load>0</Load></Limits>' };

interface Edge {
  readonly id: string;
  readonly node: Kiln;
}

/** An owner that publishes a stream, and three nodes in the order in which they are to feed each other. */
async function started(t: ExecutionContext, stream: string, scene = SCENE) {
  const redis = await usedRedis(t);
  const weigh = weighing(joinKey('default', 'app', stream));
  const ids = ['one', 'two', 'three'].sort((a, b) => weigh(a) - weigh(b));
  const [owner, ...edges] = (await Promise.all([OWNER, ...ids].map((id) => startNode(t, redis, id, OPTIONS)))) as [
    Kiln,
    Kiln,
    Kiln,
    Kiln,
  ];
  for (const node of [owner, ...edges])
    await untilStates(node, Object.fromEntries([OWNER, ...ids].map((id) => [id, 'ready'])));
  const publisher = await MediaPublisher.start(owner.ports.rtmp, stream, [scene]);
  t.teardown(() => publisher.close());
  await owner.liveStream(stream);
  return { owner, edges: edges.map((node, i): Edge => ({ id: ids[i] as string, node })) as [Edge, Edge, Edge] };
}

async function watch(t: ExecutionContext, node: Kiln, stream: string): Promise<Recorder> {
  const { client, recorder } = await until(`${stream} plays`, () =>
    playOvt(`ovt://127.0.0.1:${node.ports.ovt}/app/${stream}`).catch(() => undefined),
  );
  t.teardown(() => client.close());
  await until('there is video', () => recorder.of(0).length > 10);
  return recorder;
}

/** From the first to the last picture that a viewer got there is every one that the owner had, in order. */
async function lacksNothing(t: ExecutionContext, viewer: Recorder, source: Recorder): Promise<void> {
  const times = viewer.of(0).map(({ dts, track }) => toSeconds(dts, track.timebase));
  const longest = Math.max(...times.map((time, i) => time - (times[i - 1] ?? time)));
  t.true(longest < 2 * FRAME_SECONDS, `${longest} s are missing`);
  const seen = hashes(viewer);
  const { length } = source.of(0);
  await until('the owner has played as much', () => source.of(0).length > length + 120);
  t.log(`longest step ${longest.toFixed(3)} s`);
  t.true(hashes(source).includes(seen));
}

const hashes = (recorder: Recorder): string =>
  recorder
    .of(0)
    .map(({ data }) => createHash('sha1').update(data).digest('base64'))
    .join(' ');

test('a stream comes through the nodes in between; one that dies is replaced without a gap', async (t) => {
  const { owner, edges } = await started(t, 'tree');
  const [first, second, third] = edges;
  const source = await watch(t, owner, 'tree');
  for (const { node } of [first, second]) await watch(t, node, 'tree');
  const viewer = await watch(t, third.node, 'tree');
  t.deepEqual(
    edges.map(({ node }) => sendersOf(node, 'tree')),
    [[OWNER], [first.id], [second.id]],
  );

  second.node.signal('SIGKILL');
  await until('another node sends it', () => sendersOf(third.node, 'tree').length > 1);
  const { length } = viewer.of(0);
  await until('it goes on', () => viewer.of(0).length > length + 90);
  t.is(viewer.ended, undefined);
  t.deepEqual(sendersOf(third.node, 'tree'), [second.id, first.id]);
  t.deepEqual(sendersOf(first.node, 'tree'), [OWNER], 'the owner sends it to one node alone');

  await lacksNothing(t, viewer, source);
});

test('a suspended relay parent is replaced, and the viewer below gets what came in the meantime', async (t) => {
  const { owner, edges } = await started(t, 'still', SHORT_GOPS);
  const [first, second, third] = edges;
  const source = await watch(t, owner, 'still');
  for (const { node } of [first, second]) await watch(t, node, 'still');
  const viewer = await watch(t, third.node, 'still');
  t.deepEqual(sendersOf(third.node, 'still'), [second.id]);
  await until('it has played for a while', () => viewer.of(0).length > 180);

  second.node.signal('SIGSTOP');
  t.teardown(() => second.node.signal('SIGCONT'));
  await until('another node sends it', () => sendersOf(third.node, 'still').length > 1);
  const { length } = viewer.of(0);
  await until('it goes on', () => viewer.of(0).length > length + 90);
  t.deepEqual(sendersOf(third.node, 'still'), [second.id, first.id]);
  await lacksNothing(t, viewer, source);
});

test('viewers come in any order: the owner sends it to so many nodes and the first of all', async (t) => {
  const { owner, edges } = await started(t, 'order');
  for (const { node } of edges.toReversed()) await watch(t, node, 'order');
  const [first, second, third] = edges.map(({ node }) => sendersOf(node, 'order'));
  t.deepEqual(third, [OWNER], 'it came when the owner had room');
  t.deepEqual(first, [OWNER]);
  t.deepEqual(second, [edges[0].id]);
  t.true(owner.log.includes('is sent to enough nodes'));
});

long('a node in between drains, and then the owner dies: the viewer behind it plays on', async (t) => {
  const { owner, edges } = await started(t, 'moves');
  const [first, second, third] = edges;
  for (const { node } of [first, second]) await watch(t, node, 'moves');
  const viewer = await watch(t, third.node, 'moves');
  t.is((await owner.api(`/v1/cluster/nodes/${second.id}:drain`, 'POST')).status, 200);
  await until('another node sends it', () => sendersOf(third.node, 'moves').length > 1);
  const before = viewer.of(0).length;
  await until('it goes on', () => viewer.of(0).length > before + 30);
  t.deepEqual(sendersOf(third.node, 'moves'), [second.id, first.id]);

  owner.signal('SIGKILL');
  const publisher = await until('it is published again', () =>
    MediaPublisher.start(first.node.ports.rtmp, 'moves', [SCENE]).catch(() => undefined),
  );
  t.teardown(() => publisher.close());
  const { length } = viewer.of(0);
  await until('it goes on', () => viewer.of(0).length > length + 90);
  t.is(viewer.ended, undefined);
  const times = viewer.of(0).map(({ dts }) => dts);
  t.true(times.every((time, i) => i === 0 || time > (times[i - 1] ?? 0)));
});
