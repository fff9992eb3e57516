import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { calls } from './calls.ts';
import { channel } from './channel.ts';
import { cluster } from './cluster.ts';
import { load } from './load.ts';
import { besiege } from './besiege.ts';
import { fuzz } from './fuzz.ts';
import { matrix } from './matrix.ts';
import { media } from './media.ts';
import { model } from './model.ts';
import { operations } from './operations.ts';
import { record } from './record.ts';
import { recordings } from './recordings.ts';
import { spread } from './spread.ts';
import { transcode } from './transcode.ts';
import { tree } from './tree.ts';

/**
 * `npm run soak -- [seed] [count]`: hostile clients, by the thousand, against one server with a live stream.
 * `npm run soak -- fuzz [seed] [count] [protocol ...]`: so many of each kind, each against a server of its own.
 * `npm run soak -- load`: as many publishers and viewers as a node is to carry.
 * `npm run soak -- transcode [seed]`: encoders that are killed, and an hour of clocks that drift and jump.
 * `npm run soak -- cluster [seed] [rounds]`: nodes and a Redis that are killed, stand still, are cut off and come back; then
 * `tree` with a tenth of the rounds: what happens to viewers is looked at there.
 * `npm run soak -- tree [seed] [rounds]`: the same done to nodes that pass streams on, on a way of three levels, with viewers on all nodes.
 * `npm run soak -- calls [seed] [count]`: random calls of the management API to three nodes, against a model of one.
 * `npm run soak -- model [seed] [count]`: clusters in virtual time, with faults of nodes, network and Redis, a seed for each.
 * `npm run soak -- record [seed] [kills]`: nodes that are killed while they record, and disks that are full or gone.
 * `npm run soak -- recordings`: two hundred recordings and fifty pushes at once.
 * `npm run soak -- media [seed] [count]`: damaged media files, read as channels do.
 * `npm run soak -- channel [minutes]`: a scheduled channel in real time, all of which is decoded, and compared with its plan.
 * `npm run soak -- operations [minutes]`: a hundred streams and two hundred viewers on two nodes, Prometheus, and a console that is open and closed in turn.
 * `npm run soak -- spread [minutes]`: one stream on the eight nodes of `npm run cluster -- 8`, with hundreds of viewers.
 * `npm run soak -- matrix [rounds]`: every kind of publisher, with all codecs, and every kind of player.
 */
const [first, second, third, ...names] = process.argv.slice(2);
const FEW = 10_000;

const folder = await mkdtemp(join(tmpdir(), 'kiln-soak-'));
const clip = join(folder, 'clip.flv');
let sound = false;
try {
  if (first === 'load') sound = await load(clip, print);
  else if (first === 'transcode') sound = await transcode(Number(second ?? Date.now() % 1e6), print);
  else if (first === 'cluster') {
    const [seed, rounds] = [Number(second ?? Date.now() % 1e6), Number(third ?? 200)];
    sound = (await cluster(seed, rounds, print)) && (await tree(seed, Math.ceil(rounds / 10), print));
  } else if (first === 'tree') sound = await tree(Number(second ?? Date.now() % 1e6), Number(third ?? 100), print);
  else if (first === 'calls') sound = await calls(Number(second ?? Date.now() % 1e6), Number(third ?? 10_000), print);
  else if (first === 'model') sound = await model(Number(second ?? Date.now() % 1e6), Number(third ?? 10_000), print);
  else if (first === 'record')
    sound = await record(folder, Number(second ?? Date.now() % 1e6), Number(third ?? 50), print);
  else if (first === 'recordings') sound = await recordings(folder, print);
  else if (first === 'channel') sound = await channel(folder, Number(second ?? 20), print);
  else if (first === 'operations') sound = await operations(clip, Number(second ?? 120), print);
  else if (first === 'spread') sound = await spread(clip, Number(second ?? 2), print);
  else if (first === 'matrix') sound = await matrix(Number(second ?? 1), print);
  else if (first === 'media')
    sound = await media(folder, Number(second ?? Date.now() % 1e6), Number(third ?? 500), print);
  else if (first === 'fuzz')
    sound = await fuzz(folder, Number(second ?? Date.now() % 1e6), Number(third ?? FEW), names, print);
  else sound = await besiege(folder, Number(first ?? Date.now() % 1e6), Number(second ?? FEW), print);
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit(sound ? 0 : 1);

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
