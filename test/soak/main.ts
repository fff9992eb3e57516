import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kiln } from '../support/kiln.ts';
import { encodeClip } from '../support/load/clip.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import { until } from '../support/until.ts';
import { calls } from './calls.ts';
import { cluster } from './cluster.ts';
import { load } from './load.ts';
import { BESIEGED, Siege } from './siege.ts';
import { transcode } from './transcode.ts';

/**
 * `npm run soak -- [seed] [count]`: hostile clients, by the thousand, against one server with a live stream.
 * `npm run soak -- load`: as many publishers and viewers as a node is to carry.
 * `npm run soak -- transcode [seed]`: encoders that are killed, and an hour of clocks that drift and jump.
 * `npm run soak -- cluster [seed] [rounds]`: nodes and a Redis that are killed, stand still, are cut off and come back.
 * `npm run soak -- calls [seed] [count]`: random calls of the management API to three nodes, against a model of one.
 */
const [first, second, third] = process.argv.slice(2);
const ROUND = 1000;
const MIB = 1024 * 1024;
/** SegmentCount of the sample configuration: memory is compared from a server that holds what it holds for good. */
const WINDOW_SEGMENTS = 10;
/** Memory may grow by this share after the first round. */
const GROWTH = 1.1;
const MAX_TOLD = 5;
const MAX_LINE = 1500;

const folder = await mkdtemp(join(tmpdir(), 'kiln-soak-'));
const clip = join(folder, 'clip.flv');
let sound = false;
try {
  if (first === 'load') sound = await load(clip, print);
  else if (first === 'transcode') sound = await transcode(Number(second ?? Date.now() % 1e6), print);
  else if (first === 'cluster') sound = await cluster(Number(second ?? Date.now() % 1e6), Number(third ?? 200), print);
  else if (first === 'calls') sound = await calls(Number(second ?? Date.now() % 1e6), Number(third ?? 10_000), print);
  else sound = await soak(Number(first ?? Date.now() % 1e6), Number(second ?? 10_000));
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit(sound ? 0 : 1);

/** @returns whether the server held out */
async function soak(seed: number, count: number): Promise<boolean> {
  print(`seed ${seed}, ${count} attacks`);
  await encodeClip(clip, { size: '320x180', kbit: 300 });
  const kiln = await Kiln.start(BESIEGED);
  const publisher = new Program<PublishCommands>('publish.ts');
  try {
    await publisher.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
    await kiln.liveStream('live');
    await until('the window of the live stream is full', async () => (await segments(kiln, 'live')) >= WINDOW_SEGMENTS, 60_000);
    const siege = new Siege(kiln, seed);
    let allowed = Infinity;
    let told = 0;
    let sound = true;
    for (let done = 0; done < count; ) {
      const round = Math.min(ROUND, count - done);
      await siege.attack(round);
      done += round;
      const { residentBytes, openFiles, errors } = await siege.check();
      const memory = residentBytes.reduce((sum, bytes) => sum + bytes, 0);
      allowed = Math.min(allowed, memory * GROWTH);
      if (memory > allowed || errors.length > 0) sound = false;
      const each = residentBytes.map(mebibytes).join(' + ');
      const state = `${mebibytes(memory)} MiB (${each}), ${openFiles} open files, ${errors.length} errors`;
      print(`${String(done).padStart(7)} attacks: ${state}`);
      for (const error of errors.slice(told, told + MAX_TOLD)) print(`        ${error.slice(0, MAX_LINE)}`);
      told = errors.length;
    }
    print(sound ? 'held out' : 'did NOT hold out');
    return sound;
  } catch (error) {
    print(`did NOT hold out: ${(error as Error).message}`);
    return false;
  } finally {
    await publisher.stop();
    await kiln.stop();
  }
}

/** Complete segments that a stream's chunklist has. */
async function segments(kiln: Kiln, stream: string): Promise<number> {
  const master = await fetch(kiln.httpUrl(`/app/${stream}/llhls.m3u8`));
  if (master.status !== 200) return 0;
  const chunklist = (await master.text()).trim().split('\n').at(-1) ?? '';
  const list = await (await fetch(kiln.httpUrl(chunklist))).text();
  return list.split('#EXTINF').length - 1;
}

function mebibytes(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
