import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { stampedFrames } from '../support/load/stamp.ts';

const run = promisify(execFile);

/** A file of a recording, with the numbers of its first and last frame. */
export interface RecordedFrames {
  readonly path: string;
  readonly first: number;
  readonly last: number;
}

/**
 * The finished files of a recording, in the order of their frames, each of which is to be whole.
 * @param faults what is wrong with them is added to it
 * @param decoded how many of them are decoded
 */
export async function recordedFrames(folder: string, faults: string[], decoded = Infinity): Promise<RecordedFrames[]> {
  const files: RecordedFrames[] = [];
  for (const path of filesBelow(folder)) {
    const bytes = readFileSync(path);
    const frames = [...stampedFrames(bytes)];
    const [first] = frames;
    const last = frames.at(-1);
    if (first === undefined || last === undefined) {
      faults.push(`${path} has no frames`);
      continue;
    }
    if (frames.some((frame, index) => frame !== first + index)) faults.push(`${path} has not all frames in order`);
    if (files.length < decoded)
      await run('ffmpeg', ['-v', 'error', '-xerror', '-i', path, '-f', 'null', '-']).catch((error: Error) =>
        faults.push(`${path} cannot be decoded: ${error.message}`),
      );
    files.push({ path, first, last });
  }
  files.sort((one, other) => one.first - other.first);
  for (const [index, { path, first }] of files.entries()) {
    const before = files[index - 1];
    if (before !== undefined && before.last >= first)
      faults.push(`${path} begins with frame ${first}, which is in ${before.path}`);
  }
  return files;
}

/** Whether a file is no MP4, or one without fragments. */
export function hasIndex(path: string): boolean {
  return extname(path) !== '.mp4' || readFileSync(path).toString('latin1', 36, 40) === 'mdat';
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && ['.mp4', '.ts'].includes(extname(entry.name)))
    .map(({ name }) => join(folder, name));
}
