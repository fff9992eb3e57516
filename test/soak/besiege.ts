import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { encodeClip } from '../support/load/clip.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import { residentBytesOfEach } from '../support/load/usage.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';
import type { Attack } from './attacks.ts';
import { Siege, startBesieged } from './siege.ts';

const ROUND = 1000;
const MIB = 1024 * 1024;
/** SegmentCount of the besieged server: memory is compared from a server that holds what it holds for good. */
const WINDOW_SEGMENTS = 10;
/** Memory may grow by this share after the first round. */
const GROWTH = 1.1;
/** For longer than streams that have ended are kept, the server may take to get back to it. */
const REST_MS = 60_000;
const MAX_TOLD = 5;
const MAX_LINE = 1500;

/**
 * Attacks a server with a live stream, in rounds, and looks after each whether it serves and what it holds.
 * @param attacks those that may come; all of them unless given
 * @returns whether the server held out
 */
export async function besiege(
  folder: string,
  seed: number,
  count: number,
  print: (text: string) => void,
  attacks?: readonly Attack[],
): Promise<boolean> {
  print(`seed ${seed}, ${count} attacks`);
  const clip = join(folder, 'clip.flv');
  await encodeClip(clip, { size: '320x180', kbit: 300 });
  const besieged = await startBesieged(folder);
  const { kiln } = besieged;
  const publisher = new Program<PublishCommands>('publish.ts');
  try {
    await publisher.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
    await kiln.liveStream('live');
    await until(
      'the window of the live stream is full',
      async () => (await segments(kiln, 'live')) >= WINDOW_SEGMENTS,
      60_000,
    );
    const siege = new Siege(besieged, seed, attacks);
    await siege.check();
    let allowed = Infinity;
    let told = 0;
    let sound = true;
    for (let done = 0; done < count;) {
      const round = Math.min(ROUND, count - done);
      await siege.attack(round);
      done += round;
      const { openFiles, errors } = await siege.check();
      const residentBytes = await atRest(kiln, allowed);
      const memory = held(residentBytes);
      if (allowed === Infinity) allowed = memory * GROWTH;
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

/** Resident bytes of the server, then of each of its media workers, as soon as they are no more than allowed, or in the end. */
async function atRest(kiln: Kiln, allowed: number): Promise<readonly number[]> {
  for (const end = performance.now() + REST_MS; ;) {
    const residentBytes = residentBytesOfEach(kiln.pid);
    if (held(residentBytes) <= allowed || performance.now() > end) return residentBytes;
    await delay(1000);
  }
}

/** How many workers there are right now says nothing of a leak. */
function held([server = 0, ...workers]: readonly number[]): number {
  return server + Math.max(0, ...workers);
}

/** Complete segments that a stream's chunklist has. */
async function segments(kiln: Kiln, stream: string): Promise<number> {
  const master = await fetch(kiln.httpUrl(`/app/${stream}/llhls.m3u8`));
  if (master.status !== 200) return 0;
  const chunklist = urisOf(await master.text(), master.url).at(-1) ?? '';
  const list = await (await fetch(chunklist)).text();
  return list.split('#EXTINF').length - 1;
}

function mebibytes(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
