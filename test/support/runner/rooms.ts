import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const TESTS = join(import.meta.dirname, '../..');

/** In files with these words tests wait, which others of their process would delay, or replace timers and clocks for it. */
const NEEDS_A_PROCESS = /\b(?:async|await|mock|serial)\b/;

/**
 * Files of `test/unit/<room>/` whose tests are synchronous and share a process, as paths relative to `test/`: a process
 * for each file takes longer than its tests.
 */
export function filesOfRoom(room: string): string[] {
  const files = globSync(`unit/${room}/**/*.test.ts`, { cwd: TESTS, exclude: ['**/*.long.test.ts'] }).toSorted();
  return files.filter((file) => !NEEDS_A_PROCESS.test(readFileSync(join(TESTS, file), 'utf8')));
}

/** Declares the tests of a room in the file that is running. Their titles differ within the room. */
export async function importRoom(room: string): Promise<void> {
  for (const file of filesOfRoom(room)) await import(join(TESTS, file));
}
