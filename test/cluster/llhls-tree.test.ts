import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { joinKey, weighing } from '#cluster';
import { encodeClip, loadClip } from '../support/load/clip.ts';
import { LivePublisher } from '../support/load/live-publisher.ts';
import { LlhlsPlayer } from '../support/load/llhls-player.ts';
import type { Kiln } from '../support/kiln.ts';
import { startNode, untilStates, usedRedis } from '../support/nodes.ts';
import { SCRAPE_TOKEN } from '../support/prometheus.ts';
import { compareFiles } from '../support/tree/bytes.ts';
import { feedsOf } from '../support/tree/senders.ts';
import { until } from '../support/until.ts';

const LLHLS = '<SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount><ChunkDuration>0.5</ChunkDuration>';
const MASTER = '/app/live/llhls.m3u8';
const OWNER = 'owner';
const FRAMERATE = 30;
const OPTIONS = { llhls: LLHLS, relayFanOut: 1, env: { KILN_ACCESS_TOKEN: SCRAPE_TOKEN } };

/** The owner of a stream, three nodes in the order in which they pass it on, and the publisher. */
async function chain(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-tree-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await encodeClip(join(folder, 'clip.flv'), { size: '160x90', kbit: 150 });
  const redis = await usedRedis(t);
  const weigh = weighing(joinKey('llhls', 'default', 'app', 'live'));
  const ids = [OWNER, ...['a', 'b', 'c'].sort((one, other) => weigh(one) - weigh(other))];
  const nodes = await Promise.all(ids.map((id) => startNode(t, redis, id, OPTIONS)));
  for (const node of nodes) await untilStates(node, Object.fromEntries(ids.map((id) => [id, 'ready'])));
  const [owner, ...edges] = nodes as [Kiln, Kiln, Kiln, Kiln];
  const publisher = await LivePublisher.start(owner.ports.rtmp, 'live', await loadClip(join(folder, 'clip.flv')));
  t.teardown(() => publisher.close());
  return { owner, edges: edges as [Kiln, Kiln, Kiln], publisher };
}

async function play(t: ExecutionContext, node: Kiln, hints: boolean): Promise<LlhlsPlayer> {
  const player = await LlhlsPlayer.start({ port: node.ports.http, master: MASTER, hints });
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

for (const [what, signal] of [
  ['is killed', 'SIGKILL'],
  ['stands still', 'SIGSTOP'],
] as const)
  test.serial(`a stream takes a chain of nodes; one of them ${what}, and no player misses a frame`, async (t) => {
    const { owner, edges, publisher } = await chain(t);
    const [one, two, three] = edges;
    const players = await Promise.all([play(t, one, true), play(t, two, false), play(t, three, true)]);
    await allCome(t, players, publisher);
    for (const node of [owner, one, two]) t.is(await feedsOf(node), 1);
    two.signal(signal);
    t.teardown(() => two.signal('SIGCONT'));
    const left = [players[0], players[2]] as LlhlsPlayer[];
    await allCome(t, left, publisher);
    await until('it is passed over', async () => (await feedsOf(one)) === 1);
    const { files, differing } = await compareFiles(owner, [one, three], MASTER);
    t.deepEqual(differing, []);
    t.true(files > 20);
  });
