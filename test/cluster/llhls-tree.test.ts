import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { joinKey, weighing } from '#cluster';
import { encodeClip, loadClip } from '../support/load/clip.ts';
import { LivePublisher } from '../support/load/live-publisher.ts';
import { LlhlsPlayer } from '../support/load/llhls-player.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { H264_VIDEO, offerOf } from '../support/webrtc/offers.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { SCRAPE_TOKEN } from '../support/api/prometheus.ts';
import { compareFiles } from '../support/tree/bytes.ts';
import { feedsOf } from '../support/tree/senders.ts';
import { until } from '../support/time/until.ts';

const LLHLS = '<SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount><ChunkDuration>0.5</ChunkDuration>';
const MASTER = '/app/live/llhls.m3u8';
const OWNER = 'owner';
const FRAMERATE = 30;
const SESSIONS = '/v1/vhosts/default/apps/app/streams/live/sessions';
const OFFERING = {
  method: 'POST',
  headers: { 'content-type': 'application/sdp' },
  body: offerOf([H264_VIDEO]),
};
const OPTIONS = { llhls: LLHLS, relayFanOut: 1, env: { KILN_ACCESS_TOKEN: SCRAPE_TOKEN } };

/**
 * The owner of a stream, three nodes in the order in which they pass it on, and the publisher.
 * @param more elements of the LL-HLS publisher
 */
async function chain(t: ExecutionContext, more = '') {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-tree-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await encodeClip(join(folder, 'clip.flv'), { size: '160x90', kbit: 150 });
  const redis = await usedRedis(t);
  const weigh = weighing(joinKey('llhls', 'default', 'app', 'live'));
  const ids = [OWNER, ...['a', 'b', 'c'].sort((one, other) => weigh(one) - weigh(other))];
  const nodes = await Promise.all(ids.map((id) => startNode(t, redis, id, { ...OPTIONS, llhls: LLHLS + more })));
  for (const node of nodes) await untilStates(node, Object.fromEntries(ids.map((id) => [id, 'ready'])));
  const [owner, ...edges] = nodes as [Kiln, Kiln, Kiln, Kiln];
  const publisher = await LivePublisher.start(owner.ports.rtmp, 'live', await loadClip(join(folder, 'clip.flv')));
  t.teardown(() => publisher.close());
  return { owner, edges: edges as [Kiln, Kiln, Kiln], publisher };
}

async function play(t: ExecutionContext, node: Kiln, hints: boolean, master = MASTER): Promise<LlhlsPlayer> {
  const player = await LlhlsPlayer.start({ port: node.ports.http, master, hints });
  t.teardown(() => player.close());
  return player;
}

/** Each player plays on for some seconds, and has all frames from its first one on. */
async function allCome(t: ExecutionContext, players: readonly LlhlsPlayer[], publisher: LivePublisher): Promise<void> {
  const frames = publisher.frames + 4 * FRAMERATE;
  for (const [index, player] of players.entries()) {
    await until(
      `player ${index} has frame ${frames}`,
      () => player.failures.length > 0 || player.frames.last >= frames,
    );
    t.deepEqual(player.failures, []);
    const { seen, due } = player.frames.counts(frames);
    t.is(seen, due, `player ${index}`);
  }
}

/** Waits until each of some nodes passes the stream on to one other: on a busy machine some leave theirs, and come back. */
async function passOn(nodes: readonly Kiln[]): Promise<void> {
  for (const node of nodes) await until('it passes the stream on', async () => (await feedsOf(node)) === 1);
}

for (const [what, signal] of [
  ['is killed', 'SIGKILL'],
  ['stands still', 'SIGSTOP'],
] as const)
  test.serial(`a stream takes a chain of nodes; one of them ${what}, and no player misses a frame`, async (t) => {
    const { owner, edges, publisher } = await chain(t);
    const [one, two, three] = edges;
    const players = await Promise.all([play(t, one, true), play(t, two, false), play(t, three, true)]);
    await allCome(t, players, publisher);
    await passOn([owner, one, two]);
    two.signal(signal);
    t.teardown(() => two.signal('SIGCONT'));
    const left = [players[0], players[2]] as LlhlsPlayer[];
    await allCome(t, left, publisher);
    await until('it is passed over', async () => (await feedsOf(one)) === 1);
    const { files, differing } = await compareFiles(owner, [one, three], MASTER);
    t.deepEqual(differing, []);
    t.true(files > 20);
  });

test.serial('a named player at the end of a chain is listed, has its name for itself, and can be kicked', async (t) => {
  const { owner, edges, publisher } = await chain(t);
  const [one, two, three] = edges;
  const nodes = [owner, ...edges];
  const listed = async (node: Kiln) =>
    (await node.api<string[]>(SESSIONS)).body.response.filter((id) => id === 'alice');
  const statusAt = async (node: Kiln) => (await fetch(node.httpUrl(`${MASTER}?session=alice`))).status;
  const others = [await play(t, one, true), await play(t, two, true)];
  const alice = await play(t, three, true, `${MASTER}?session=alice`);
  await allCome(t, [...others, alice], publisher);
  await passOn([owner, one, two]);
  for (const node of nodes) await until('it is listed', async () => (await listed(node)).join() === 'alice');
  t.is((await fetch(owner.httpUrl('/app/live?direction=whep&session=alice'), OFFERING)).status, 409);
  t.is((await owner.api(`${SESSIONS}/alice`, 'DELETE')).status, 200);
  await until('the player is turned away', () => alice.failures.length > 0);
  for (const node of nodes) {
    await until('it is listed no more', async () => (await listed(node)).length === 0);
    t.is(await statusAt(node), 401);
  }
  await allCome(t, others, publisher);
});

test.serial(
  'a chain of nodes with OriginMode has the same files at the same addresses, and counts no viewer',
  async (t) => {
    const { owner, edges, publisher } = await chain(t, '<OriginMode>true</OriginMode>');
    const players = await Promise.all(edges.map((node) => play(t, node, true)));
    await allCome(t, players, publisher);
    await passOn([owner, edges[0], edges[1]]);
    const masters = await Promise.all(
      [owner, ...edges].map(async (node) => (await fetch(node.httpUrl(MASTER))).text()),
    );
    t.is(new Set(masters).size, 1);
    const uris = urisOf(String(masters[0]), MASTER);
    t.true(uris.length > 0);
    for (const uri of uris) t.regex(uri, /^\/app\/live\/chunklist_[^/?]+\.m3u8$/, 'no token');
    t.deepEqual((await compareFiles(owner, edges, MASTER)).differing, []);
    for (const node of [owner, ...edges]) t.deepEqual((await node.api<string[]>(SESSIONS)).body.response, []);
    const { body } = await owner.api<{ connections: { llhls: number } }>('/v1/stats/current/vhosts/default/apps/app');
    t.is(body.response.connections.llhls, 0);
  },
);
