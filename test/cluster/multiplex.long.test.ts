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
import { Teardown } from '../support/programs/teardown.ts';
import { shared } from '../support/runner/shared.ts';
import { nodesOf, untilStates } from '../support/server/nodes.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
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

const READY = { a: 'ready', b: 'ready', c: 'ready' };
const nodes = sharedNodes(['a', 'b', 'c'], {
  llhls: LONG_LLHLS,
  providers: '<Multiplex/>',
  application: ladderXml([BYPASS, SOUND]),
});
const teardown = new Teardown();
test.after.always(() => teardown.run());

async function publish(node: Kiln, stream: string): Promise<MediaPublisher> {
  const publisher = await MediaPublisher.start(node.ports.rtmp, stream, [scene]);
  teardown.teardown(() => publisher.close());
  return publisher;
}

/**
 * A channel of two streams that the first node has, owned by another node.
 * @returns also that node, the third one and the publisher of the video
 */
const channel = shared(async () => {
  const [a, b, c] = nodes();
  for (const node of nodes()) await untilStates(node, READY);
  await publish(a, 'mic');
  const cam = await publish(a, 'cam');
  // by its name it has a place among the nodes: one that is not where its sources are
  for (let i = 0; ; i++) {
    const name = `mux${i}`;
    await createMultiplex(c, name, SOURCES, PLAYLISTS);
    await untilPlays(b, name);
    await until('the statistics of nodes count it', async () => {
      const rows = [...(await nodesOf(a)).values()];
      return rows.reduce((sum, { streams }) => sum + streams, 0) === 3;
    });
    const owner = await ownerOf(a, { b, c });
    if (owner !== undefined) return { name, cam, owner: owner === 'b' ? b : c, third: owner === 'b' ? c : b };
    await a.api(`${MULTIPLEX_CHANNELS}/${name}`, 'DELETE');
  }
});

/** Kills the owner, which is back afterwards. @returns the channel's first segments after that, and when there were two */
const killed = shared(async () => {
  const { name, owner, third } = await channel();
  const [a] = nodes();
  await untilGoesOn(a, name);
  const before = newest(await pictureAt(a, name));
  const begun = performance.now();
  owner.signal('SIGKILL');
  await owner.exited();
  const recording = await untilGoesOn(a, name, before);
  const tookMs = Math.round(performance.now() - begun);
  await untilPlays(third, name);
  await owner.restart();
  await untilStates(a, READY);
  return { recording, tookMs };
});

/** Ends a source, and publishes it to the third node; the channel goes on after that. */
const moved = shared(async () => {
  await killed();
  const { name, cam, third } = await channel();
  cam.close();
  await until('the source has gone', async () => (await third.stream('cam')).status === 404);
  const before = newest(await pictureAt(nodes()[0], name)) ?? 0;
  await publish(third, 'cam');
  await untilPlays(nodes()[0], name);
  await untilGoesOn(nodes()[0], name, before);
});

/** Drains the node that owns the channel now. @returns the newest segment before that, and the status of the answer */
const drained = shared(async () => {
  await moved();
  const { name, third } = await channel();
  const [a, b] = nodes();
  // beside the publishers of the sources
  const sources: Readonly<Record<string, number>> = { a: 1, [third === b ? 'b' : 'c']: 1 };
  const owner = await until(
    'the statistics of nodes count it',
    async () => [...(await nodesOf(a))].find(([id, { streams }]) => streams > (sources[id] ?? 0))?.[0],
  );
  const before = newest(await pictureAt(a, name)) ?? 0;
  return { before, status: (await a.api(`/v1/cluster/nodes/${owner}:drain`, 'POST')).status };
});

test.serial('a multiplex channel of streams of another node plays on all nodes', async (t) => {
  const { name } = await channel();
  await untilGoesOn(nodes()[0], name);
  await t.notThrowsAsync(Promise.all(nodes().map((node) => untilPlays(node, name))));
});

test.serial('a multiplex channel goes on with one discontinuity when its node is killed', async (t) => {
  const { recording, tookMs } = await killed();
  t.log(`goes on ${tookMs} ms after the kill, with two segments`);
  t.is(recording.segments.filter(({ discontinuity }) => discontinuity).length, 1);
});

test.serial('a multiplex channel goes on when a source that was away is back on another node', async (t) => {
  await t.notThrowsAsync(moved);
});

test.serial('a multiplex channel goes on when its node is drained', async (t) => {
  const { before, status } = await drained();
  t.is(status, 200);
  const { name } = await channel();
  const [a] = nodes();
  await untilGoesOn(a, name, before + 2);
  await untilPlays(a, name);
});

test.serial('a multiplex channel of a node that was drained is gone from all nodes when one deletes it', async (t) => {
  await drained();
  const { name } = await channel();
  t.is((await nodes()[0].api(`${MULTIPLEX_CHANNELS}/${name}`, 'DELETE')).status, 200);
  await until('it is gone everywhere', async () => {
    const found = await Promise.all(nodes().map(async (node) => (await node.stream(name)).status));
    return found.every((status) => status === 404);
  });
});
