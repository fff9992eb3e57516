import { processTree, programOf } from '../load/usage.ts';

/** Process ids of the ffmpegs that a process has started. */
export function encodersOf(pid: number): number[] {
  return processTree(pid).filter((each) => programOf(each) === 'ffmpeg');
}
