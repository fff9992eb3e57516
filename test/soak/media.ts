import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MediaFiles } from '../../src/channels/scheduled/media-files.ts';
import { processTree } from '../support/load/usage.ts';
import { readUnits, writePattern } from '../support/media/media-files.ts';
import { until } from '../support/time/until.ts';
import { mutate } from './mutate.ts';
import { Random } from './random.ts';

/** A file of a few seconds is read within this, whatever is wrong with it. */
const PATIENCE_MS = 60_000;
const NAMES = ['clip.mp4', 'clip.ts', 'clip.mkv', 'clip.mp3'];

/**
 * Reads damaged media files as channels do: each ends, with frames or a reason, and leaves no program behind.
 * @returns whether all did
 */
export async function media(
  folder: string,
  seed: number,
  count: number,
  print: (text: string) => void,
): Promise<boolean> {
  print(`seed ${seed}, ${count} files`);
  const random = new Random(seed);
  const files = new MediaFiles(folder, 'ffmpeg');
  const clips: Buffer[] = [];
  for (const name of NAMES) {
    const isSound = name.endsWith('.mp3');
    await writePattern(join(folder, name), isSound ? { video: [], audio: ['-c:a', 'libmp3lame'] } : {});
    clips.push(await readFile(join(folder, name)));
  }
  let played = 0;
  for (let i = 0; i < count; i++) {
    const name = `damaged${i}`;
    await writeFile(join(folder, name), mutate(random.pick(clips), random, random.pick(clips)));
    const late = AbortSignal.timeout(PATIENCE_MS);
    const read = readUnits(files, `file://${name}`, random.chance(0.3) ? random.below(4000) : 0);
    const end = await Promise.race([
      read,
      new Promise<undefined>((resolve) => late.addEventListener('abort', () => resolve(undefined))),
    ]);
    if (end === undefined) {
      print(`file ${i} does not end`);
      return false;
    }
    if (end.units.length > 0) played++;
    await rm(join(folder, name));
  }
  await until('no program is left', () => processTree(process.pid).length === 1);
  print(`${played} of them have frames`);
  return true;
}
