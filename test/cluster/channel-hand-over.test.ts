import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Program } from '../support/media/ffmpeg.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { BYPASS, ladderXml } from '../support/media/ladder-config.ts';
import { long } from '../support/runner/long.ts';
import { mediaFolder } from '../support/media/media-files.ts';
import { createMultiplex, MULTIPLEX_CHANNELS, sourceOf, untilPlays } from '../support/channels/multiplex-api.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { writeNumbered } from '../support/media/numbered-files.ts';
import { PartViewer, type ShownPicture } from '../support/hls/part-viewer.ts';
import { until } from '../support/time/until.ts';

const LLHLS = '<ChunkDuration>0.2</ChunkDuration><SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount>';
const READY = { a: 'ready', b: 'ready', c: 'ready' };
const RATE = 25;
const FRAME_MS = 1000 / RATE;
const GOP = 25;
/** Items of the scheduled channel, and frames of each. */
const ITEMS = 3;
const FRAMES = 200;
/** Drains one after the other; five for figures. */
const ROUNDS = Number(process.env['KILN_DRAINS'] ?? 2);
/** Parts that are played before a change, and behind it. */
const PARTS = 10;

type Nodes = Readonly<Record<string, Kiln>>;

async function startNodes(t: ExecutionContext, providers: string): Promise<Nodes> {
  const redis = await usedRedis(t);
  const options = { llhls: LLHLS, providers, application: ladderXml([BYPASS]) };
  const ids = ['a', 'b', 'c'];
  const started = await Promise.all(ids.map((id) => startNode(t, redis, id, options)));
  for (const node of started) await untilStates(node, READY);
  return Object.fromEntries(ids.map((id, i) => [id, started[i] as Kiln]));
}

/** The node that has more streams of its own than the publishers' ones. */
const ownerOf = (asked: Kiln, published: Readonly<Record<string, number>> = {}) =>
  until('the statistics of nodes count the channel', async () => {
    const rows = [...(await nodesOf(asked)).values()].filter(({ state }) => state !== 'lost');
    const own = rows.filter(({ id, streams }) => streams > (published[id] ?? 0));
    return own.length === 1 && own[0]?.id;
  });

/** More is played, and behind the next discontinuity where one is to come. */
async function playsOn(viewer: PartViewer, behind = viewer.discontinuities): Promise<void> {
  await until('it goes on behind the change', () => viewer.discontinuities >= behind);
  const { parts } = viewer;
  await until('more is played', () => viewer.parts >= parts + PARTS);
}

/** Where a picture is in everything that is played again and again, in frames. */
const placeOf = ({ item, frame }: ShownPicture): number => item * FRAMES + frame;

/** What a viewer met at each discontinuity: frames that were missed, negative where they came twice, and how long nothing came. */
function changes(pictures: readonly ShownPicture[], frames: number) {
  return pictures.flatMap((after, i) => {
    const before = pictures[i - 1];
    if (before === undefined || before.discontinuity === after.discontinuity) return [];
    const step = (placeOf(after) - placeOf(before) - 1 + 1.5 * frames) % frames;
    return [{ missed: step - frames / 2, waitedMs: after.at - before.at }];
  });
}

/** Drains the owner of a channel, several times. */
async function drains(asked: Kiln, viewer: PartViewer, published: Readonly<Record<string, number>> = {}) {
  for (let round = 0; round < ROUNDS; round++) {
    await playsOn(viewer);
    const before = viewer.discontinuities;
    const owner = await ownerOf(asked, published);
    if ((await asked.api(`/v1/cluster/nodes/${owner}:drain`, 'POST')).status !== 200) throw new Error('no drain');
    await playsOn(viewer, before + 1);
    await asked.api(`/v1/cluster/nodes/${owner}:undrain`, 'POST');
    await untilStates(asked, READY);
  }
}

test('a scheduled channel goes on for its viewers when its node stops, and at its position when it dies', async (t) => {
  const { folder, remove } = await mediaFolder();
  t.teardown(remove);
  for (let item = 0; item < ITEMS; item++)
    await writeNumbered(join(folder, `${item}.mp4`), { item, frames: FRAMES, rate: RATE, gop: GOP });
  const nodes = await startNodes(t, `<Schedule><MediaRootDir>${folder}</MediaRootDir></Schedule>`);
  const begin = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;
  const items = Array.from({ length: ITEMS }, (_, item) => ({ url: `file://${item}.mp4` }));
  const made = await (nodes['a'] as Kiln).api('/v1/vhosts/default/apps/app/scheduledChannels', 'POST', {
    stream: { name: 'tv', bypassTranscoder: true },
    programs: [{ name: 'all', scheduled: new Date(begin).toISOString(), repeat: true, items }],
  });
  t.is(made.status, 201);

  const first = await ownerOf(nodes['a'] as Kiln);
  const viewers = new Map<string, PartViewer>();
  for (const [id, node] of Object.entries(nodes)) {
    if (id === first) continue;
    const viewer = await PartViewer.start(node.httpUrl('/app/tv/llhls.m3u8'));
    t.teardown(() => viewer.close());
    viewers.set(id, viewer);
  }
  for (const viewer of viewers.values()) await playsOn(viewer);
  (nodes[first] as Kiln).signal('SIGTERM');
  for (const viewer of viewers.values()) await playsOn(viewer, 1);
  t.is(await nodes[first]?.exited(), 0);
  for (const { failures } of viewers.values()) t.deepEqual(failures, []);

  // what is watched where it does not run goes on
  const [stays = ''] = [...viewers.keys()];
  const second = await ownerOf(nodes[stays] as Kiln);
  const [, viewer] = [...viewers].find(([id]) => id !== second) as [string, PartViewer];
  (nodes[second] as Kiln).signal('SIGKILL');
  await playsOn(viewer, 2);
  viewer.close();

  const all = ITEMS * FRAMES;
  const pictures = await viewer.pictures();
  const met = changes(pictures, all);
  t.log(met.map(({ missed, waitedMs }) => `${missed} frames missed, ${waitedMs} ms`).join('; '));
  t.is(met.length, 2);
  t.true(Math.abs(met[0]?.missed ?? NaN) <= GOP);
  // what is shown is what is scheduled, a little later
  const round = all * FRAME_MS;
  for (const picture of pictures) {
    // a picture may be there a little early, which is not a round late
    const late = ((picture.at - begin - placeOf(picture) * FRAME_MS + FRAME_MS) % round) - FRAME_MS;
    t.true(late < round / 2, `${late} ms`);
  }
});

long('a multiplex channel goes on for its viewers when its node drains', async (t) => {
  const { folder, remove } = await mediaFolder();
  t.teardown(remove);
  const file = join(folder, 'source.mp4');
  const frames = 1000;
  await writeNumbered(file, { item: 0, frames, rate: RATE, gop: GOP });
  const nodes = await startNodes(t, '<Multiplex/>');
  const a = nodes['a'] as Kiln;
  const flags = ['-nostdin', '-v', 'error', '-re', '-stream_loop', '-1'];
  const publisher = new Program('ffmpeg', [...flags, '-i', file, '-c', 'copy', '-f', 'flv', a.rtmpUrl('cam')]);
  t.teardown(() => publisher.stop());
  await a.liveStream('cam');
  const published = { a: 1 };
  // by its name it has a place among the nodes: one that is not where its source is
  let name = '';
  for (let i = 0, owner = 'a'; owner === 'a'; i++) {
    if (name !== '') await a.api(`${MULTIPLEX_CHANNELS}/${name}`, 'DELETE');
    name = `mux${i}`;
    await createMultiplex(a, name, [sourceOf('cam', ['source', 'picture'])], {}, { bypassTranscoder: true });
    await untilPlays(a, name);
    owner = await ownerOf(a, published);
  }
  const viewer = await PartViewer.start(a.httpUrl(`/app/${name}/llhls.m3u8`));
  t.teardown(() => viewer.close());
  await drains(a, viewer, published);
  viewer.close();
  t.deepEqual(viewer.failures, []);
  const pictures = await viewer.pictures();
  const met = changes(pictures, frames);
  t.log(met.map(({ missed, waitedMs }) => `${missed} frames missed, ${waitedMs} ms`).join('; '));
  t.is(met.length, ROUNDS);
  for (const { missed } of met) t.true(Math.abs(missed) <= GOP);
});
