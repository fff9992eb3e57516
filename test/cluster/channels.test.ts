import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { writePattern } from '../support/media/media-files.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const CHANNELS = '/v1/vhosts/default/apps/app/scheduledChannels';
const TV = `${CHANNELS}/tv`;
const MUX = '/v1/vhosts/default/apps/app/multiplexChannels';
const CREATED = { message: 'Created', statusCode: 201 };
const LENGTH = 6000;

interface Detail {
  readonly programs: readonly { readonly name: string }[];
  readonly currentProgram: {
    readonly state: string;
    readonly name?: string;
    readonly scheduled?: string;
    readonly currentItem?: { readonly url: string; readonly currentPosition: number };
  };
}

async function open(t: ExecutionContext): Promise<{ nodes: readonly [Kiln, Kiln, Kiln]; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-channels-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await writePattern(join(folder, 'a.mp4'), { seconds: LENGTH / 1000 });
  const providers =
    `<Schedule><MediaRootDir>${folder}</MediaRootDir><ScheduleFilesDir>channels</ScheduleFilesDir></Schedule>` +
    '<Multiplex/>';
  const redis = await usedRedis(t);
  const ids = ['a', 'b', 'c'];
  const nodes = await Promise.all(ids.map((id) => startNode(t, redis, id, { providers })));
  for (const node of nodes) await untilStates(node, { a: 'ready', b: 'ready', c: 'ready' });
  return { nodes: nodes as unknown as readonly [Kiln, Kiln, Kiln], folder };
}

const current = async (node: Kiln) => (await node.api<Detail>(TV)).body.response?.currentProgram;

/** How far what plays is from where the clock says that it should be, in milliseconds; the file repeats. */
async function deviation(node: Kiln, begin: number): Promise<number> {
  const before = Date.now();
  const { currentItem } = (await current(node)) ?? {};
  const after = Date.now();
  const at = (time: number) => (time - begin) % LENGTH;
  const off = ((currentItem?.currentPosition ?? NaN) - at((before + after) / 2) + 1.5 * LENGTH) % LENGTH;
  return Math.abs(off - LENGTH / 2) - (after - before) / 2;
}

const onAir = (node: Kiln, name: string) =>
  until(`${name} is on air`, async () => {
    const { state, name: program } = (await current(node)) ?? {};
    return state === 'onair' && program === name;
  });

test('a channel is made, changed, seen and deleted on any node, and goes on when its node dies', async (t) => {
  const { nodes } = await open(t);
  const [a, b, c] = nodes;
  const begin = Math.floor(Date.now() / 1000) * 1000 - 3_600_000;
  const program = (name: string) => ({
    name,
    scheduled: new Date(begin).toISOString(),
    repeat: true,
    items: [{ url: 'file://a.mp4' }],
  });
  const made = await a.api(CHANNELS, 'POST', { stream: { name: 'tv' }, programs: [program('first')] });
  t.deepEqual([made.status, made.body as object], [201, CREATED]);
  for (const node of nodes) t.deepEqual((await node.api<string[]>(CHANNELS)).body.response, ['tv']);
  t.is((await b.api(CHANNELS, 'POST', { stream: { name: 'tv' }, programs: [] })).status, 409);
  await onAir(c, 'first');
  for (const node of nodes) {
    await until('the stream is listed', async () => (await node.stream('tv')).status === 200);
    t.like((await node.stream('tv')).body.response, { input: { sourceType: 'Scheduled' } });
  }

  const patched = await b.api(TV, 'PATCH', { programs: [program('second')] });
  t.deepEqual([patched.status, patched.body as object], [201, CREATED]);
  for (const node of nodes)
    t.deepEqual(
      (await node.api<Detail>(TV)).body.response.programs.map(({ name }) => name),
      ['second'],
    );
  await onAir(c, 'second');

  const owner = await until('a node tells of its stream', async () =>
    [...(await nodesOf(a)).values()].find(({ streams }) => streams > 0),
  );
  const victim = { a, b, c }[owner.id] as Kiln;
  const others = nodes.filter((node) => node !== victim) as [Kiln, Kiln];
  const killed = performance.now();
  victim.signal('SIGKILL');
  await victim.exited();
  await until('it is on air again', async () => {
    const { status, body } = await others[0].api<Detail>(TV);
    return (
      status === 200 && body.response.currentProgram.state === 'onair' && (await others[0].stream('tv')).status === 200
    );
  });
  t.log(`on air again ${Math.round(performance.now() - killed)} ms after kill -9`);
  await until('it plays what the schedule says', async () => (await deviation(others[1], begin)) < 500);

  t.deepEqual((await others[1].api(TV, 'DELETE')).body as object, { message: 'OK', statusCode: 200 });
  for (const node of others) {
    t.deepEqual((await node.api<string[]>(CHANNELS)).body.response, []);
    t.is((await node.api(TV)).status, 404);
  }
  await until('its stream is gone', async () => (await others[0].stream('tv')).status === 404);

  const filed = { stream: { name: 'tv' }, programs: [program('third')] };
  t.is((await others[0].api(CHANNELS, 'POST', filed)).status, 201);
  await onAir(others[1], 'third');
  const mux = {
    outputStream: { name: 'mux' },
    sourceStreams: [
      {
        name: 'tv',
        url: 'stream://default/app/tv',
        trackMap: [{ sourceTrackName: 'bypass_video', newTrackName: 'v' }],
      },
    ],
    playlists: [{ name: 'p', fileName: 'p', renditions: [{ name: 'r', video: 'v' }] }],
  };
  t.is((await others[1].api(MUX, 'POST', mux)).status, 201);
  await until('it plays', async () => {
    const { body } = await others[0].api<{ state: string }>(`${MUX}/mux`);
    return body.response?.state === 'Playing';
  });
  t.is((await others[0].api(`${MUX}/mux`, 'DELETE')).status, 200);
});
