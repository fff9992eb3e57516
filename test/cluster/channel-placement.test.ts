import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { writePattern } from '../support/media/media-files.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const CHANNELS = '/v1/vhosts/default/apps/app/scheduledChannels';
const READY = { a: 'ready', b: 'ready', c: 'ready' };
/** By its name each has another place among the nodes. */
const NAMES = ['one', 'two', 'three', 'four', 'five', 'six'];

interface Detail {
  readonly currentProgram: { readonly state: string; readonly currentItem?: { readonly url: string } };
}

/** How many of the channels each node has. */
async function spread(asked: Kiln): Promise<Record<string, number>> {
  return Object.fromEntries([...(await nodesOf(asked))].map(([id, { streams }]) => [id, streams]));
}

test('channels run on the node that has their files, and nowhere else while there is one', async (t) => {
  const redis = await usedRedis(t);
  const options = { providers: '<Schedule><MediaRootDir>media</MediaRootDir></Schedule>' };
  const start = (id: string): Promise<Kiln> => startNode(t, redis, id, options);
  const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map(start))) as [Kiln, Kiln, Kiln];
  for (const node of [a, b, c]) await untilStates(node, READY);
  for (const node of [a, b, c]) await mkdir(join(node.folder, 'media'));
  const fileOf = (node: Kiln): string => join(node.folder, 'media/show.mp4');
  await writePattern(fileOf(b), { seconds: 20 });

  const isOnAir = async (asked: Kiln, name: string): Promise<boolean> => {
    const { status, body } = await asked.api<Detail>(`${CHANNELS}/${name}`);
    const { state, currentItem } = body.response?.currentProgram ?? {};
    return status === 200 && state === 'onair' && currentItem?.url === 'file://show.mp4';
  };
  const untilAllPlay = (asked: Kiln, wanted: Readonly<Record<string, number>>): Promise<boolean> =>
    until(`all play, on ${JSON.stringify(wanted)}`, async () => {
      const found = await spread(asked);
      if (Object.entries(wanted).some(([id, count]) => found[id] !== count)) return false;
      return (await Promise.all(NAMES.map((name) => isOnAir(asked, name)))).every((plays) => plays);
    });
  for (const name of NAMES) {
    const made = await a.api(CHANNELS, 'POST', {
      stream: { name, bypassTranscoder: true },
      programs: [
        { name: 'all', scheduled: '2026-01-01T00:00:00Z', repeat: true, items: [{ url: 'file://show.mp4' }] },
        // nobody has it yet
        { name: 'later', scheduled: '2099-01-01T00:00:00Z', items: [{ url: 'file://later.mp4' }] },
      ],
    });
    t.is(made.status, 201);
    t.false('response' in made.body, 'the files can be read: where the channel runs');
  }
  await untilAllPlay(c, { a: 0, b: NAMES.length, c: 0 });

  // nobody else has the files: they stay
  t.is((await a.api('/v1/cluster/nodes/b:drain', 'POST')).status, 200);
  await until('it keeps them', () => b.log.includes('no other node can run the task now'));
  await untilAllPlay(c, { a: 0, b: NAMES.length, c: 0 });
  // now one has
  await copyFile(fileOf(b), fileOf(c));
  await untilAllPlay(a, { a: 0, b: 0, c: NAMES.length });
  t.is((await a.api('/v1/cluster/nodes/b:undrain', 'POST')).status, 200);
  await untilStates(a, READY);

  c.signal('SIGKILL');
  await c.exited();
  await untilAllPlay(a, { a: 0, b: NAMES.length });

  b.signal('SIGKILL');
  await b.exited();
  await until('a node without their files has them', async () => (await spread(a))['a'] === NAMES.length);
  await b.restart();
  await untilAllPlay(a, { a: 0, b: NAMES.length });
});
