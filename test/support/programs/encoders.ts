import { readFileSync } from 'node:fs';
import { processTree } from '../load/usage.ts';

/** Process ids of the ffmpegs that a process has started. */
export function encodersOf(pid: number): number[] {
  return processTree(pid).filter((each) => {
    try {
      return readFileSync(`/proc/${each}/comm`, 'latin1').trim() === 'ffmpeg';
    } catch {
      // it is gone by now
      return false;
    }
  });
}
