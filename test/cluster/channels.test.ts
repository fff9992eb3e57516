import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import {
  createMultiplex,
  MULTIPLEX_CHANNELS,
  playlistOf,
  sourceOf,
  untilPlays,
} from '../support/channels/multiplex-api.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { writePattern } from '../support/media/media-files.ts';
import { shared } from '../support/runner/shared.ts';
import { nodesOf, untilStates } from '../support/server/nodes.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { until } from '../support/time/until.ts';

const CHANNELS = '/v1/vhosts/default/apps/app/scheduledChannels';
const TV = `${CHANNELS}/tv`;
const CREATED = { message: 'Created', statusCode: 201 };
const OK = { message: 'OK', statusCode: 200 };
/** Of the file that each program repeats, in milliseconds. */
const LENGTH = 6000;
/** Of the first repetition, in milliseconds since the epoch. */
const BEGIN = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;

interface Detail {
  readonly programs: readonly { readonly name: string }[];
  readonly currentProgram: {
    readonly state: string;
    readonly name?: string;
    readonly scheduled?: string;
    readonly currentItem?: { readonly url: string; readonly currentPosition: number };
  };
}

const folder = mkdtempSync(join(tmpdir(), 'kiln-channels-'));
test.before(() => writePattern(join(folder, 'a.mp4'), { seconds: LENGTH / 1000 }));
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const IDS = ['a', 'b', 'c'] as const;
const nodes = sharedNodes(IDS, {
  providers:
    `<Schedule><MediaRootDir>${folder}</MediaRootDir><ScheduleFilesDir>channels</ScheduleFilesDir></Schedule>` +
    '<Multiplex/>',
});

const current = async (node: Kiln) => (await node.api<Detail>(TV)).body.response?.currentProgram;

/** How far what plays is from where the clock says that it should be, in milliseconds; the file repeats. */
async function deviation(node: Kiln): Promise<number> {
  const before = Date.now();
  const { currentItem } = (await current(node)) ?? {};
  const after = Date.now();
  const at = (time: number) => (time - BEGIN) % LENGTH;
  const off = ((currentItem?.currentPosition ?? NaN) - at((before + after) / 2) + 1.5 * LENGTH) % LENGTH;
  return Math.abs(off - LENGTH / 2) - (after - before) / 2;
}

const onAir = (node: Kiln, name: string) =>
  until(`${name} is on air`, async () => {
    const { state, name: program } = (await current(node)) ?? {};
    return state === 'onair' && program === name;
  });

const channelOf = (name: string) => ({
  stream: { name: 'tv' },
  programs: [{ name, scheduled: new Date(BEGIN).toISOString(), repeat: true, items: [{ url: 'file://a.mp4' }] }],
});

// each step of the channel's life is taken once, by the first test that comes after it

/** Makes the channel on the first node, when all know each other. @returns the answer */
const made = shared(async () => {
  for (const node of nodes()) await untilStates(node, { a: 'ready', b: 'ready', c: 'ready' });
  return nodes()[0].api(CHANNELS, 'POST', channelOf('first'));
});

/** Changes it on the second node. @returns the answer */
const changed = shared(async () => {
  await made();
  return nodes()[1].api(TV, 'PATCH', { programs: channelOf('second').programs });
});

/** Kills the node that owns it, once it is on air. @returns the other nodes, when it is on air again */
const survivors = shared(async () => {
  await changed();
  const [a, , c] = nodes();
  await onAir(c, 'second');
  const owner = await until('a node tells of its stream', async () =>
    [...(await nodesOf(a)).values()].find(({ streams }) => streams > 0),
  );
  const victim = nodes()[IDS.findIndex((id) => id === owner.id)] as Kiln;
  const others = nodes().filter((node) => node !== victim) as [Kiln, Kiln];
  const killed = performance.now();
  victim.signal('SIGKILL');
  await victim.exited();
  await until('it is on air again', async () => {
    const { status, body } = await others[0].api<Detail>(TV);
    const { state } = (status === 200 && body.response.currentProgram) || {};
    return state === 'onair' && (await others[0].stream('tv')).status === 200;
  });
  return { others, tookMs: Math.round(performance.now() - killed) };
});

/** Deletes it on a node that is left. @returns the answer */
const deleted = shared(async () => {
  const { others } = await survivors();
  return others[1].api(TV, 'DELETE');
});

/** Makes another channel of that name. @returns the status of the answer */
const madeAgain = shared(async () => {
  await deleted();
  const { others } = await survivors();
  await until('its stream is gone', async () => (await others[0].stream('tv')).status === 404);
  return (await others[0].api(CHANNELS, 'POST', channelOf('third'))).status;
});

test.serial(
  'a scheduled channel that was made on one node is known to all, and cannot be made on another',
  async (t) => {
    const { status, body } = await made();
    t.deepEqual([status, body as object], [201, CREATED]);
    for (const node of nodes()) t.deepEqual((await node.api<string[]>(CHANNELS)).body.response, ['tv']);
    t.is((await nodes()[1].api(CHANNELS, 'POST', { stream: { name: 'tv' }, programs: [] })).status, 409);
  },
);

test.serial('the stream of a scheduled channel is shown by every node, whichever made the channel', async (t) => {
  await made();
  await onAir(nodes()[2], 'first');
  for (const node of nodes()) {
    await until('the stream is listed', async () => (await node.stream('tv')).status === 200);
    t.like((await node.stream('tv')).body.response, { input: { sourceType: 'Scheduled' } });
  }
});

test.serial('a scheduled channel that is changed on one node has its new program on all, and plays it', async (t) => {
  const { status, body } = await changed();
  t.deepEqual([status, body as object], [201, CREATED]);
  for (const node of nodes()) {
    const { programs } = (await node.api<Detail>(TV)).body.response;
    t.deepEqual(
      programs.map(({ name }) => name),
      ['second'],
    );
  }
  await onAir(nodes()[2], 'second');
});

test.serial('a scheduled channel whose node is killed goes on elsewhere, where its schedule says', async (t) => {
  const { others, tookMs } = await survivors();
  t.log(`on air again ${tookMs} ms after kill -9`);
  await t.notThrowsAsync(until('it plays what the schedule says', async () => (await deviation(others[1])) < 500));
});

test.serial('a scheduled channel that was taken over is deleted on one node, and gone from all', async (t) => {
  t.deepEqual((await deleted()).body as object, OK);
  const { others } = await survivors();
  for (const node of others) {
    t.deepEqual((await node.api<string[]>(CHANNELS)).body.response, []);
    t.is((await node.api(TV)).status, 404);
  }
  await until('its stream is gone', async () => (await others[0].stream('tv')).status === 404);
});

test.serial('a scheduled channel plays under the name of one that was deleted', async (t) => {
  t.is(await madeAgain(), 201);
  const { others } = await survivors();
  await onAir(others[1], 'third');
});

test.serial(
  'a multiplex channel that was made on one node plays a scheduled channel that was made on another',
  async (t) => {
    await madeAgain();
    const { others } = await survivors();
    const sources = [sourceOf('tv', ['bypass_video', 'v'])];
    await createMultiplex(others[1], 'mux', sources, { playlists: [playlistOf('p', { name: 'r', video: 'v' })] });
    await untilPlays(others[0], 'mux');
    t.is((await others[0].api(`${MULTIPLEX_CHANNELS}/mux`, 'DELETE')).status, 200);
  },
);
