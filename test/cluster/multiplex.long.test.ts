import test from 'ava';
import { aac } from '../support/media/aac.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { BYPASS, ladderXml, LONG_LLHLS } from '../support/media/ladder-config.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import {
  createMultiplex,
  MULTIPLEX_CHANNELS,
  playlistOf,
  sourceOf,
  untilPlays,
} from '../support/channels/multiplex-api.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { chunklists, record, type Recording } from '../support/hls/llhls-recording.ts';
import { until } from '../support/time/until.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const SOUND = '<Audio><Name>sound</Name><Bypass>true</Bypass></Audio>';
/** As long as whole frames of both last, so that it can be looped. */
const SECONDS = 3.2;
const scene = {
  video: await h264({ width: 160, height: 90, fps: 15, gop: 16, seconds: SECONDS, kbit: 100 }),
  audio: await aac(440, {}, SECONDS),
};
const SOURCES = [sourceOf('cam', ['source', 'picture']), sourceOf('mic', ['sound', 'voice'])];
const PLAYLISTS = { playlists: [playlistOf('llhls', { name: 'both', video: 'picture', audio: 'voice' })] };

/** The picture of a channel, as far as a node lists it. */
async function pictureAt(node: Kiln, name: string): Promise<Recording | undefined> {
  const lists = await chunklists(node.httpUrl(`/app/${name}/llhls.m3u8`)).catch(() => undefined);
  const list = lists?.get(0);
  return list === undefined ? undefined : await record(list).catch(() => undefined);
}

const newest = (recording: Recording | undefined): number | undefined => recording?.segments.at(-1)?.msn;

/** Waits until a node has two segments more of a channel than `after`. @returns what it lists */
function untilGoesOn(node: Kiln, name: string, after = -1): Promise<Recording> {
  return until(`${name} goes on behind ${after}`, async () => {
    const recording = await pictureAt(node, name);
    return (newest(recording) ?? -1) >= after + 2 && recording;
  });
}

/** The node that runs a channel: the only one of these that has a stream of its own. */
async function ownerOf(asked: Kiln, nodes: Readonly<Record<string, Kiln>>): Promise<string | undefined> {
  const rows = await nodesOf(asked);
  return Object.keys(nodes).find((id) => rows.get(id)?.state === 'ready' && rows.get(id)?.streams === 1);
}

test('a channel of streams of another node goes on when its node is killed or drained, and when a source was away', async (t) => {
  const redis = await usedRedis(t);
  const options = { llhls: LONG_LLHLS, providers: '<Multiplex/>', application: ladderXml([BYPASS, SOUND]) };
  const start = (id: string): Promise<Kiln> => startNode(t, redis, id, options);
  const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map(start))) as [Kiln, Kiln, Kiln];
  for (const node of [a, b, c]) await untilStates(node, { a: 'ready', b: 'ready', c: 'ready' });
  const publish = (node: Kiln, stream: string) => MediaPublisher.start(node.ports.rtmp, stream, [scene]);
  const mic = await publish(a, 'mic');
  let cam = await publish(a, 'cam');
  t.teardown(() => [mic, cam].forEach((publisher) => publisher.close()));

  // by its name it has a place among the nodes: one that is not where its sources are
  const others = { b, c };
  let name = '';
  let owner: string | undefined;
  for (let i = 0; owner === undefined; i++) {
    name = `mux${i}`;
    await createMultiplex(c, name, SOURCES, PLAYLISTS);
    await untilPlays(b, name);
    const streams = await until('the statistics of nodes count it', async () => {
      const rows = [...(await nodesOf(a)).values()].map((row) => row.streams);
      return rows.reduce((sum, count) => sum + count, 0) === 3 && rows;
    });
    t.log(`${name}: ${streams.join()}`);
    owner = await ownerOf(a, others);
    if (owner === undefined) await a.api(`${MULTIPLEX_CHANNELS}/${name}`, 'DELETE');
  }
  await untilGoesOn(a, name);
  for (const node of [a, b, c]) await untilPlays(node, name);

  const victim = others[owner as keyof typeof others];
  const survivor = victim === b ? c : b;
  const killed = performance.now();
  const first = newest(await pictureAt(a, name));
  victim.signal('SIGKILL');
  await victim.exited();
  const second = await untilGoesOn(a, name, first);
  t.log(`goes on ${Math.round(performance.now() - killed)} ms after the kill, with two segments`);
  t.is(second.segments.filter(({ discontinuity }) => discontinuity).length, 1);
  await untilPlays(survivor, name);
  await victim.restart();
  await untilStates(a, { a: 'ready', b: 'ready', c: 'ready' });

  cam.close();
  await until('the source has gone', async () => (await survivor.stream('cam')).status === 404);
  const before = newest(await pictureAt(a, name)) ?? 0;
  cam = await publish(survivor, 'cam');
  await untilPlays(a, name);
  await untilGoesOn(a, name, before);

  // beside the publishers of the sources
  const sources: Readonly<Record<string, number>> = { a: 1, [survivor === b ? 'b' : 'c']: 1 };
  const has = await until(
    'the statistics of nodes count it',
    async () => [...(await nodesOf(a))].find(([id, { streams }]) => streams > (sources[id] ?? 0))?.[0],
  );
  const last = newest(await pictureAt(a, name)) ?? 0;
  t.is((await a.api(`/v1/cluster/nodes/${has}:drain`, 'POST')).status, 200);
  await untilGoesOn(a, name, last + 2);
  await untilPlays(a, name);
  t.is((await a.api(`${MULTIPLEX_CHANNELS}/${name}`, 'DELETE')).status, 200);
  await until('it is gone everywhere', async () => {
    const found = await Promise.all([a, b, c].map(async (node) => (await node.stream(name)).status));
    return found.every((status) => status === 404);
  });
});
